#!/usr/bin/env bash
# Trains the agents of the study `atari-short` side by side on one GPU, a few at a time, each by one
# command that could run alone. `idrl sweep atari-short` trains the same runs, but gives each its own
# cores; here they share all of them. QUEUE has a line per run: its name, the agent, the game, and
# settings of its own if it has any; # begins a comment. Started again with the same RUNS it
# continues: runs that were begun are resumed, finished ones are left as they are. What a run prints
# is in RUNS/logs. The exit status is 0 when all runs are finished.
# usage: results/atari/short/run.sh RUNS JOBS [FRAMES [SEED]] < QUEUE
set -u
if [[ $# -lt 2 || $# -gt 4 || ! $2 =~ ^[1-9][0-9]*$ || ! ${4:-100} =~ ^[0-9]+$ ]]; then
  sed -n 's/^# usage/usage/p' "$0" >&2
  exit 2
fi
export RUNS=$1 FRAMES=${3:-10M} SEED=${4:-100} PYTHONUNBUFFERED=1
export XLA_PYTHON_CLIENT_PREALLOCATE=false # as `idrl sweep` does where runs share a GPU
mkdir -p "$RUNS/logs" || exit 1 # not beside the runs: RUNS/asterix-* names folders of runs alone
# With it, kernels of different runs overlap.
if command -v nvidia-cuda-mps-control > /dev/null; then nvidia-cuda-mps-control -d; fi
one() {
  read -r name agent game settings <<< "$1"
  command=(python3 -m idrl.cli train)
  if [[ -e $RUNS/$name/run.json ]]; then
    command+=(--resume "$RUNS/$name" --frames "$FRAMES")
  else
    command+=("$agent" "atari/$game" --preset short --frames "$FRAMES" --envs 128 --seed "$SEED"
      --set learning.precision=mixed $settings --out "$RUNS/$name")
  fi
  echo "${command[*]}" >> "$RUNS/logs/$name.log"
  begin=$SECONDS
  "${command[@]}" >> "$RUNS/logs/$name.log" 2>&1
  status=$?
  echo "$name: exit $status after $((SECONDS - begin)) s" | tee -a "$RUNS/logs/$name.log"
  return $((status != 0))
}
export -f one
sed 's/#.*//; /^[[:space:]]*$/d' | tr '\n' '\0' | xargs -0 -P "$2" -I{} bash -c 'one "$1"' _ {}
status=$?
if ((status)); then echo "not all runs are finished: see $RUNS/logs, then start this again" >&2; fi
exit $status
