"""Score a trained agent, and say in words why it explores as it does.

python examples/evaluate_and_explain.py [RUN]      # a run folder; without one it trains
"""

import sys

import idrl

if len(sys.argv) > 1:
    run = idrl.open_run(sys.argv[1])
else:
    run = idrl.train("c51-ids", "deep_sea/8", seeds=2, steps=400)  # early: it still explores

print("best weights of each seed:", idrl.evaluate(run, episodes=20).return_mean)

episode = idrl.play(run, weights="latest", page="play.html", max_steps=200)
print(episode)
for t in episode.disagreements[:3]:
    greedy, taken = episode.greedy[t], episode.explored[t]
    print(f"step {t}: greedy takes action {greedy}, exploring takes {taken}, because")
    for name in ("mu", "regret", "info_gain", "ratio"):
        numbers = getattr(episode, name)[t]
        print(f"    {name:9} is {numbers[greedy]:.3g} and {numbers[taken]:.3g}")
print("The whole episode is in play.html")
