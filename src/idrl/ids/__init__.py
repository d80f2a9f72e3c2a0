"""Information-directed sampling: what an action may cost, what it may teach, and which to take.

Pure functions over arrays with any leading batch shape, usable without the rest of the library.
NumPy arrays in give NumPy arrays out (float64 stays float64); JAX arrays give JAX arrays, under
`jit` and `vmap` too. Names follow the paper: `mu`, `sigma`, `rho2`, `regret`, `info_gain`, `ratio`.

An action whose mean, variance or noise is NaN or infinite is never chosen while a finite one is
left: its regret and ratio read +inf, it takes no part in the maximum of the regret, and its
probability is 0. Where no action is left (all of them non-finite or masked) `action` is -1 and
every probability 0, so that nobody mistakes the answer for a choice.
"""

from idrl.ids.deciding import decide, decide_moments, moments, relative
from idrl.ids.decision import Comparison, Decision
from idrl.ids.decision import Decided as Decided
from idrl.ids.noise import NOISES as NOISES
from idrl.ids.noise import observation_noise
from idrl.ids.policies import POLICIES as POLICIES
from idrl.ids.terms import INFO_GAINS as INFO_GAINS
from idrl.ids.terms import REGRETS as REGRETS

__all__ = [
    "Comparison",
    "Decision",
    "decide",
    "decide_moments",
    "moments",
    "observation_noise",
    "relative",
]
