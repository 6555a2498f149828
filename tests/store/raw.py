"""Raw transactions over a plain LMDB environment, for tests of what sits on them."""

from typing import Any

import lmdb

from simindex.store import layout


class PlainRaw:
    def __init__(self, env: "PlainEnvironment", txn: Any) -> None:
        self._env, self._txn = env, txn
        self.id, self.epoch, self.cache = txn.id(), 1, env.cache
        self.txn = txn

    @property
    def is_open(self) -> bool:
        return self._txn is not None

    def db(self, kind: str) -> Any:
        return self._env.databases[kind]

    def end(self) -> None:
        if self._txn is not None:
            self._txn.abort()
            self._txn = None

    abort = end

    def commit(self) -> None:
        self._txn.commit()
        self._txn = None

    def __exit__(self, *_: object) -> None:
        self.end()


class PlainEnvironment:
    def __init__(self, path: Any, map_size: int = 1 << 34) -> None:
        self.env = lmdb.open(
            str(path), subdir=False, max_dbs=len(layout.DATABASES), map_size=map_size, lib_version=0,
            metasync=False, sync=False,
        )  # fmt: skip
        self.databases = {name: self.env.open_db(name.encode()) for name in layout.DATABASES}
        self.cache: dict[int, Any] = {}

    def begin_read(self) -> PlainRaw:
        return PlainRaw(self, self.env.begin(buffers=True))

    def begin_write(self, timeout: float | None = None) -> PlainRaw:
        return PlainRaw(self, self.env.begin(write=True, buffers=True))

    def close(self) -> None:
        self.env.close()
