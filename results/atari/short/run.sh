#!/usr/bin/env bash
# Trains the agents of the study `atari-short` side by side on one GPU, a few at a time, each by one
# command that could run alone. `idrl sweep atari-short` trains the same runs, but gives each its own
# cores; here they share all of them. QUEUE has a line per run: its name, the agent, the game, and
# settings of its own if it has any.
# usage: results/atari/short/run.sh RUNS JOBS [FRAMES] < QUEUE
set -u
export RUNS=$1 FRAMES=${3:-10M} PYTHONUNBUFFERED=1
export XLA_PYTHON_CLIENT_PREALLOCATE=false # as `idrl sweep` does where runs share a GPU
mkdir -p "$RUNS"
# With it, kernels of different runs overlap.
if command -v nvidia-cuda-mps-control > /dev/null; then nvidia-cuda-mps-control -d; fi
one() {
  read -r name agent game settings <<< "$1"
  command=(python3 -m idrl.cli train "$agent" "atari/$game" --preset short --frames "$FRAMES" --envs 128 --seed 100
    --set learning.precision=mixed $settings --out "$RUNS/$name")
  echo "${command[*]}" > "$RUNS/$name.log"
  begin=$SECONDS
  "${command[@]}" >> "$RUNS/$name.log" 2>&1
  echo "exit $? after $((SECONDS - begin)) s" >> "$RUNS/$name.log"
}
export -f one
tr '\n' '\0' | xargs -0 -P "$2" -I{} bash -c 'one "$1"' _ {}
