"""Ours: python -m benchmarks.peers.run_idrl REQUEST"""

from benchmarks.peers.clock import Clock

clock = Clock()

from idrl.runs import api  # noqa: E402, F401

IMPORT_S = clock.seconds()

from benchmarks.peers import work  # noqa: E402
from benchmarks.peers.ours import learn, program_of, runner  # noqa: E402


def main() -> None:
    if "learn" in clock.request:
        request = clock.request
        learn(clock, request["learn"], request["like"], request["seeds"])
        return
    task = work.TASKS[clock.request["task"]]
    for job in clock.request["jobs"]:

        def ready(job=job):
            program = program_of(task, job["algo"], job["seeds"])
            return runner(program, task.stretch(job))

        clock.measure(job, task.update_every, IMPORT_S, ready)


main()
