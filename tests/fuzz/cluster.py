"""A cluster of threads in this process, which does what :mod:`ahop.index.shards` asks of Ray."""

from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as TooLate
from types import SimpleNamespace


class GetTimeoutError(Exception):
    pass


class RayActorError(Exception):
    pass


class RayTaskError(Exception):
    def __init__(self, cause):
        super().__init__(str(cause))
        self.cause = cause


exceptions = SimpleNamespace(GetTimeoutError=GetTimeoutError, RayActorError=RayActorError, RayTaskError=RayTaskError)


class Actor:
    """An object that does one thing after another, in the order in which they were asked for."""

    def __init__(self, kind, args):
        self.does, self.held = ThreadPoolExecutor(1), kind(*args)

    def __getattr__(self, name):
        def ask(*args):
            try:
                return self.does.submit(getattr(self.held, name), *args)
            except RuntimeError as error:
                gone = Future()
                gone.set_exception(RayActorError(str(error)))
                return gone

        return SimpleNamespace(remote=ask)

    @property
    def __ray_terminate__(self):
        return SimpleNamespace(remote=lambda: self.does.shutdown(wait=False))


def remote(kind):
    made = SimpleNamespace(remote=lambda *args: Actor(kind, args))
    return SimpleNamespace(options=lambda **_: made)


def put(thing):
    done = Future()
    done.set_result(thing)
    return done


def get(asked, timeout=None):
    if isinstance(asked, list):
        return [get(one, timeout) for one in asked]
    try:
        return asked.result(timeout)
    except TooLate as error:
        raise GetTimeoutError(str(error)) from error
    except RayActorError:
        raise
    except Exception as error:
        raise RayTaskError(error) from error


def kill(actor):
    actor.does.shutdown(wait=False, cancel_futures=True)


def is_initialized():
    return True
