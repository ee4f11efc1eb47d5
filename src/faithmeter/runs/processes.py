"""Training by several processes of this machine, one for each GPU, or on CPUs.

`torch.distributed.run`, which `accelerate launch` also calls, starts this module in each process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from ..config import RoarConfig, TrainConfig
from ..errors import InputError
from ..files import write_json
from ..training import Goal, Session

ORDER, RESULT = ".processes.json", ".processes-result.json"
"""Files in the run's folder: the arguments for the processes, and the first one's result or an error."""
LOG = "processes.log"
"""File in the run's folder with the output of processes that failed."""
ERROR = "error"
PROGRESS = "faithmeter progress: "
"""Start of a line of progress on standard output, to which libraries may also print."""


def usable_cores() -> int:
    """Return the number of cores that this process may use, which a container or `taskset` may limit."""
    if hasattr(os, "sched_getaffinity"):  # Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def free_memory() -> int:
    """Return the bytes of memory that are free or can be freed; 8 GB where the system does not tell."""
    file = Path("/proc/meminfo")
    for line in file.read_text(encoding="utf-8").splitlines() if file.is_file() else ():
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            return int(value.split()[0]) * 1024
    return 8 * 2**30


def finetune_together(config: TrainConfig, folder: Path, goal: Goal, session: Session) -> dict[str, Any]:
    """Fine-tune a model by several processes, and return the results as `finetune` does.

    The mini-batches are those of one process, each divided among the processes, so the results are the same
    within rounding for a model without dropout.

    Args:
        config: Config of the run; its batch size must be a multiple of the processes.
        folder: Folder of the run.
        goal: Tokens to mask in all splits; targets and early stopping are for one process only.
        session: Number of processes, and a callback that reports steps.

    Raises:
        InputError: The training cannot be done as configured.
        RuntimeError: A process failed otherwise; its output is in `processes.log`.
    """
    for name in (RESULT, LOG):
        (folder / name).unlink(missing_ok=True)
    show = next((callback.show for callback in session.callbacks if hasattr(callback, "show")), None)
    order = {"kind": config.kind, "config": config.to_dict(), "resume": session.resume}
    write_json(folder / ORDER, {**order, "erased": goal.erased, "previous": goal.previous})
    processes = session.processes
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += [f"--nproc-per-node={processes}", "-m", __name__, str(folder)]
    # processes share the cores; torch would give all cores to each
    threads = os.environ.get("OMP_NUM_THREADS") or str(max(1, usable_cores() // processes))
    streams: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with (folder / LOG).open("w", encoding="utf-8") as log:
        process = subprocess.Popen(
            command, stderr=log, env=os.environ | {"OMP_NUM_THREADS": threads}, **streams
        )
        try:
            for line in process.stdout or ():
                # libraries print to standard output, too
                if show is not None and line.startswith(PROGRESS):
                    show(*json.loads(line.removeprefix(PROGRESS)))
            process.wait()
        finally:
            process.terminate()  # after an error in `show`, such as Ctrl-C
    try:
        result: dict[str, Any] = json.loads((folder / RESULT).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RuntimeError(
            f"one of {processes} processes ended with exit code {process.returncode}; see {folder / LOG}"
        ) from None
    if ERROR in result:
        raise InputError(result[ERROR])
    for name in (ORDER, RESULT, LOG):
        (folder / name).unlink(missing_ok=True)
    return result


def require_one_process() -> None:
    """Raise an InputError in a process of a launcher; all of them would claim the same run."""
    processes = int(os.environ.get("WORLD_SIZE", 1))
    if processes > 1:
        raise InputError(
            f"a launcher started {processes} processes of this command; start it once, with "
            f"--processes {processes}"
        )


def end_with_parent() -> None:
    """Start a thread that ends this process as soon as its parent ends, i.e. when standard input closes."""

    def watch() -> None:
        while os.read(0, 1):
            pass
        os._exit(1)  # has the effect of a kill, after which a store is intact

    threading.Thread(target=watch, daemon=True).start()


def main(folder: Path) -> None:
    """Take part in a training as one of several processes.

    A process that cannot train as configured writes its message for the parent and exits with code 1, at
    which the launcher ends the others.
    """
    end_with_parent()
    from ..training.finetuning import finetune
    from ..training.trainer import StepReport
    from .measured import task_of

    order = json.loads((folder / ORDER).read_text(encoding="utf-8"))
    config = {"train": TrainConfig, "roar": RoarConfig}[order["kind"]](**order["config"])
    first = os.environ["RANK"] == "0"
    callbacks = [StepReport(lambda *step: print(PROGRESS + json.dumps(step), flush=True))] if first else []
    goal, session = Goal(order["erased"], order["previous"]), Session(order["resume"], callbacks)
    try:
        result = finetune(config, task_of(config), folder, goal, session)
    except InputError as error:
        write_json(folder / RESULT, {ERROR: str(error)})
        sys.exit(1)
    if first:
        write_json(folder / RESULT, result)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
