#!/usr/bin/env bash
# Measures on this machine's GPU what the docs say of Atari's speed: games in processes, the start
# of a run, training (also with the replay in host memory), evaluation beside training. A log and a
# CSV file for each in OUT; a command that takes longer than LIMIT seconds is ended, and the others
# go on. Seven and a half minutes of an H200; the parts can be measured one at a time.
# usage: results/atari/measure.sh OUT [PART...]
#   PART: emulators start training beside; all of them by default
set -u
if [[ $# -lt 1 || $1 == -* ]]; then
  sed -n 's/^# usage/usage/p' "$0" >&2
  exit 2
fi
out=$1
shift
mkdir -p "$out" || exit 1
export PYTHONUNBUFFERED=1
# What a rehearsal on a small machine makes smaller.
envs=${ENVS:-128} steps=${STEPS:-100000} capacity=${CAPACITY:-1000000} limit=${LIMIT:-300}
python=${PYTHON:-python3} failed=0
run() {
  local name=$1
  shift
  echo "== $name: $*"
  timeout "$limit" "$python" -m "benchmarks.$@" 2>&1 | tee -a "$out/$name.log"
  if ((PIPESTATUS[0])); then failed=1 && echo "$name: not finished" >&2; fi
}
same=("training.envs=$envs" "learning.precision=mixed")
for part in "${@:-emulators start training beside}"; do
  for name in $part; do
    case $name in
      emulators)
        run emulators emulators 1 "$(nproc)" --games "$envs" --steps $((steps / 300)) --rounds 1 \
          --csv "$out/emulators.csv"
        ;;
      start)
        run start start c51-ids atari/pong --steps "$steps" --rounds 1 \
          --csv "$out/start.csv" --set "${same[@]}" \
          "learning.learning_starts_steps=$((steps / 2))" "learning.replay_capacity=$capacity"
        ;;
      training)
        run training atari "dqn/$envs/mixed" "dqn/$envs/mixed/processes=1" \
          "c51-ids/$envs/mixed" "c51-ids/$envs/mixed/host" \
          --together 1 --seconds 4 \
          --capacity "$capacity" --csv "$out/training.csv"
        ;;
      beside)
        run beside beside c51-ids atari/pong --steps $((steps * 3)) --rounds 1 --set "${same[@]}" \
          "learning.learning_starts_steps=$((steps / 4))" "learning.replay_capacity=$capacity" \
          "evaluation.every_steps=$steps" "evaluation.steps=$((steps / 2))" "evaluation.envs=$envs" \
          --csv "$out/beside.csv"
        ;;
      *)
        echo "no part is called $name" >&2
        exit 2
        ;;
    esac
  done
done
exit $failed
