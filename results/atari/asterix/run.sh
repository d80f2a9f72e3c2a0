#!/usr/bin/env bash
# Trains agents side by side on one GPU: atari/asterix, 10M frames, one seed each, and packs their
# tables into OUT/NAME.tgz. Each is the one command printed below, and could run alone.
# usage: results/atari/asterix/run.sh OUT NAME SECONDS SEED AGENT...
set -u
out=$1 name=$2 seconds=$3 seed=$4
shift 4
runs=/tmp/runs-$name
mkdir -p "$runs" "$out"
export PYTHONPATH=.offline-site:src PYTHONUNBUFFERED=1 XLA_PYTHON_CLIENT_MEM_FRACTION=0.29
# Where the driver offers it, processes share the GPU kernel by kernel instead of by time slices.
if command -v nvidia-cuda-mps-control > /dev/null; then
  export CUDA_MPS_PIPE_DIRECTORY=/tmp/mps CUDA_MPS_LOG_DIRECTORY=/tmp/mps-log
  mkdir -p /tmp/mps /tmp/mps-log
  nvidia-cuda-mps-control -d 2> /dev/null
  if ! timeout 40 python3 -c 'import jax; jax.numpy.ones(3).sum().block_until_ready()' 2> /dev/null; then
    echo quit | timeout 10 nvidia-cuda-mps-control
    unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
  fi
fi
echo "shared by MPS: ${CUDA_MPS_PIPE_DIRECTORY:-no}"
for agent in "$@"; do
  command=(python3 -m idrl.cli train "$agent" atari/asterix --frames 10M --envs 128 --seed "$seed"
    --set evaluation.every_steps=312500 evaluation.steps=25000 --out "$runs/$agent")
  echo "${command[*]}"
  timeout -s INT -k 20 "$seconds" "${command[@]}" > "$runs/$agent.log" 2>&1 &
done
wait
for agent in "$@"; do
  echo "== $agent"
  tail -c 400 "$runs/$agent.log"
  cut -d, -f1-6 "$runs/$agent/evaluations.csv"
done
tar czf "$out/$name.tgz" --exclude=checkpoints --exclude=replay -C "$runs" .
