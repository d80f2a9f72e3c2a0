"""The peer of `benchmarks.against_torch`: one C51-IDS update in plain PyTorch. Needs torch alone.

    python benchmarks/torch_update.py minatar|atari [updates]     # prints milliseconds per update

Same work as ours: a trunk of convolutions, K heads on one wide matrix, a C51 head that leaves the
trunk alone, double-Q targets per head, Huber, 1/K into the trunk, one Adam.
"""

import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

K, ATOMS, BATCH, CHANNELS = 10, 51, 32, 4
# side of the board or screen, convolutions (filters, size, stride), features, width, actions
SIZES = {
    "minatar": (10, ((16, 3, 1),), 1024, 128, 3),
    "atari": (84, ((32, 8, 4), (64, 4, 2), (64, 3, 1)), 3136, 512, 6),
}
SIDE, CONVOLUTIONS, FEATURES, WIDTH, ACTIONS = SIZES[sys.argv[1]]
V_MIN, V_MAX, GAMMA = -10.0, 10.0, 0.99


class ScaleGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, share):
        ctx.share = share
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.share, None


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        channels, layers = CHANNELS, []
        for filters, size, stride in CONVOLUTIONS:
            layers += [nn.Conv2d(channels, filters, size, stride), nn.ReLU()]
            channels = filters
        self.trunk = nn.Sequential(*layers)
        self.wide = nn.Linear(FEATURES, K * WIDTH)
        self.out = nn.Parameter(torch.randn(K, WIDTH, ACTIONS) / WIDTH**0.5)
        self.bias = nn.Parameter(torch.zeros(K, 1, ACTIONS))
        self.z1 = nn.Linear(FEATURES, WIDTH)
        self.z2 = nn.Linear(WIDTH, ACTIONS * ATOMS)

    def forward(self, x):
        features = self.trunk(x).flatten(1)
        hidden = F.relu(self.wide(ScaleGradient.apply(features, 1 / K)))
        heads = hidden.view(-1, K, WIDTH).transpose(0, 1)
        q = torch.bmm(heads, self.out) + self.bias  # [K, B, A]
        logits = self.z2(F.relu(self.z1(features.detach())))
        return q, logits.view(-1, ACTIONS, ATOMS)


def project(atoms, values, probs):
    spacing = atoms[1] - atoms[0]
    values = values.clamp(V_MIN, V_MAX)
    distance = (values[:, None, :] - atoms[None, :, None]).abs() / spacing
    return ((1 - distance).clamp(0, 1) * probs[:, None, :]).sum(-1)


def update(net, target, optimiser, atoms, s, a, r, d, s2):
    q, logits = net(s)
    with torch.no_grad():
        online_q, _ = net(s2)
        target_q, target_logits = target(s2)
        best = online_q.argmax(-1, keepdim=True)
        goal = r + d * target_q.gather(-1, best).squeeze(-1)
        probs = target_logits.softmax(-1)
        chosen = (probs * atoms).sum(-1).argmax(-1)
        probs = probs[torch.arange(BATCH), chosen]
        goal_z = project(atoms, r[:, None] + d[:, None] * atoms, probs)
    taken = q.gather(-1, a.expand(K, -1)[..., None]).squeeze(-1)
    loss = F.smooth_l1_loss(taken, goal, reduction="none").mean(1).sum()
    log_z = logits[torch.arange(BATCH), a].log_softmax(-1)
    loss = loss - (goal_z * log_z).sum(-1).mean()
    optimiser.zero_grad(set_to_none=True)
    loss.backward()
    optimiser.step()


def main() -> None:
    updates = int(sys.argv[2]) if len(sys.argv) > 2 else 100
    torch.manual_seed(0)
    net, target = Net(), Net()
    target.load_state_dict(net.state_dict())
    optimiser = torch.optim.Adam(net.parameters(), 1e-4)
    atoms = torch.linspace(V_MIN, V_MAX, ATOMS)
    frames = (torch.rand(600, CHANNELS, SIDE, SIDE) < 0.1).to(torch.uint8)

    def one():
        i = torch.randint(0, 599, (BATCH,))
        a = torch.randint(0, ACTIONS, (BATCH,))
        r, d = torch.rand(BATCH), torch.full((BATCH,), GAMMA)
        update(net, target, optimiser, atoms, frames[i].float(), a, r, d, frames[i + 1].float())

    for _ in range(5):
        one()
    times = []
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(updates):
            one()
        times.append((time.perf_counter() - start) / updates)
    print(1e3 * statistics.median(times))


if __name__ == "__main__":
    main()
