"""The seeds of a run, laid over the devices that share them."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from idrl.training.ahead import Early
from idrl.training.batching import mesh_of
from idrl.training.seeding import seed_key

# Where the seeds of a pytree are: first, behind the steps of a stretch, or nowhere.
SEEDS, STEPS_SEEDS, SAME = PartitionSpec("seeds"), PartitionSpec(None, "seeds"), PartitionSpec()


class SeedLayout:
    """So many seeds, each on one of the devices; a single device holds them all."""

    def __init__(self, seeds: int):
        self.seeds, self.mesh = seeds, mesh_of(seeds)
        self._keys = Early(jax.vmap(lambda n: jax.random.key_data(seed_key(n))))

    def _over_devices(self, function, in_specs, out_specs):
        """Seeds never talk to each other, so each device runs its share on its own."""
        if self.mesh is None:
            return function
        return jax.shard_map(
            function, mesh=self.mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False
        )

    def seed_keys(self, seed: int) -> jax.Array:
        """The keys of seeds `seed`, `seed + 1`, …, laid over the devices."""
        return self._spread(self._keys(self._seed_numbers(seed)))

    def _seed_numbers(self, seed: int) -> np.ndarray:
        return np.arange(seed, seed + self.seeds, dtype=np.uint32)

    def _key_shapes(self) -> Any:
        return self._placed(jax.eval_shape(self._keys.jitted, self._seed_numbers(0)))

    def _placed(self, shapes: Any) -> Any:
        """The shapes of a pytree whose seeds are laid over the devices."""
        if self.mesh is None:
            return shapes
        where = NamedSharding(self.mesh, SEEDS)
        return jax.tree.map(lambda x: x.update(sharding=where), shapes)

    def _spread(self, tree: Any) -> Any:
        """Lay the seeds of a pytree over the devices, as the programs expect them."""
        if self.mesh is None:
            return jax.tree.map(jnp.asarray, tree)
        return jax.device_put(tree, NamedSharding(self.mesh, SEEDS))
