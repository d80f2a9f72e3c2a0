"""Train an agent, keep its weights in one file, and act with them.

python examples/train_and_save.py
"""

import idrl

run = idrl.train("dqn-ids", "deep_sea/8", seeds=2, steps=2_000, progress=True)
print(run.evaluations)  # every table of a run has NumPy columns: run.evaluations["return_mean"]

agent = idrl.load(run)  # the best weights of the best seed
agent.save("model.safetensors")  # numbers and settings; nothing that can run code

agent = idrl.load("model.safetensors")
print(agent, idrl.evaluate(agent, episodes=20), sep="\n")
