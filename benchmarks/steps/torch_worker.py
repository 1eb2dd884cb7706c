"""Whole training steps in PyTorch, on request: step_worker.cpp's peer.

Commands and answers are those of step_worker.cpp; "kernels" gives the number of those launched in a
step, copies and fills included, or null where PyTorch's profiler does not see them.
With --ranks it is one of several processes that Open MPI has started; they exchange gradients
through Gloo. Each hears all commands, and rank 0 answers.
"""

import argparse
import io
import json
import os
import sys
import tempfile
import time

os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # the profiler reports to whoever runs this

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity

import tensor_file

ADAM = {"default": {}, "foreach": {"foreach": True}, "fused": {"fused": True}}


def fill(tensor, values):
    with torch.no_grad():
        tensor.copy_(values)


def dense(weights, name):
    n_in, n_out = weights[f"{name}.weight"].shape
    layer = torch.nn.Linear(n_in, n_out)
    fill(layer.weight, weights[f"{name}.weight"].t())
    fill(layer.bias, weights[f"{name}.bias"])
    return layer


def mlp(weights):
    layers = []
    while f"{len(layers) // 2}.weight" in weights:
        layers += [dense(weights, str(len(layers) // 2)), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1]), torch.nn.functional.cross_entropy


class Forecaster(torch.nn.Module):
    """PyTorch's LSTM has two biases that are added. The second is zero here and stays so."""

    def __init__(self, weights):
        super().__init__()
        features, hidden = weights["lstm.0.input"].shape[0], weights["lstm.0.recurrent"].shape[0]
        layers = sum(name.startswith("lstm.") and name.endswith(".input") for name in weights)
        self.lstm = torch.nn.LSTM(features, hidden, layers, batch_first=True)
        for i in range(layers):
            fill(getattr(self.lstm, f"weight_ih_l{i}"), weights[f"lstm.{i}.input"].t())
            fill(getattr(self.lstm, f"weight_hh_l{i}"), weights[f"lstm.{i}.recurrent"].t())
            fill(getattr(self.lstm, f"bias_ih_l{i}"), weights[f"lstm.{i}.bias"])
            second = getattr(self.lstm, f"bias_hh_l{i}")
            fill(second, 0)
            second.requires_grad_(False)
        self.head = dense(weights, "head")

    def forward(self, x):
        # The final state of the last layer. The last step of the sequence is the same, but its
        # gradient would be a whole sequence of mostly zeros.
        return self.head(self.lstm(x)[1][0][-1])


def lstm(weights):
    return Forecaster(weights), torch.nn.functional.mse_loss


def norm(weights, name):
    layer = torch.nn.LayerNorm(len(weights[f"{name}.scale"]))
    fill(layer.weight, weights[f"{name}.scale"])
    return layer


class Gpt(torch.nn.Module):
    def __init__(self, weights):
        super().__init__()
        self.token = torch.nn.Embedding.from_pretrained(weights["token.weight"].clone(), False)
        self.position = torch.nn.Embedding.from_pretrained(
            weights["position.weight"].clone(), False
        )
        self.heads = len(weights["heads"])
        names = ["norm_1", "attention.qkv", "attention.output", "norm_2", "fc", "proj"]
        self.blocks = torch.nn.ModuleList()
        while f"block.{len(self.blocks)}.norm_1.scale" in weights:
            parts = [f"block.{len(self.blocks)}.{name}" for name in names]
            self.blocks.append(
                torch.nn.ModuleList(
                    norm(weights, part) if "norm" in part else dense(weights, part)
                    for part in parts
                )
            )
        self.norm = norm(weights, "norm")

    def attend(self, x, qkv):
        heads = [
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in qkv(x).chunk(3, dim=-1)
        ]
        attended = torch.nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
        return attended.transpose(1, 2).flatten(-2)

    def forward(self, tokens):
        x = self.token(tokens) + self.position.weight
        for norm_1, qkv, output, norm_2, fc, proj in self.blocks:
            x = x + output(self.attend(norm_1(x), qkv))
            x = x + proj(torch.nn.functional.gelu(fc(norm_2(x)), approximate="tanh"))
        return self.norm(x) @ self.token.weight.t()


def gpt(weights):
    def loss(scores, y):
        return torch.nn.functional.cross_entropy(scores.flatten(0, 1), y.flatten())

    return Gpt(weights), loss


def conv(weights, name, stride=1):
    values = weights[f"{name}.conv.weight"]
    n_out, n_in, kernel, _ = values.shape
    layer = torch.nn.Conv2d(n_in, n_out, kernel, stride, kernel // 2, bias=False)
    fill(layer.weight, values)
    return torch.nn.Sequential(layer, torch.nn.BatchNorm2d(n_out))


class Residual(torch.nn.Module):
    def __init__(self, weights, name):
        super().__init__()
        stride = 2 if f"{name}.shortcut.conv.weight" in weights else 1
        self.first = conv(weights, f"{name}.first", stride)
        self.second = conv(weights, f"{name}.second")
        self.shortcut = conv(weights, f"{name}.shortcut", 2) if stride == 2 else torch.nn.Identity()

    def forward(self, x):
        return torch.relu(self.second(torch.relu(self.first(x))) + self.shortcut(x))


class ResNet(torch.nn.Module):
    def __init__(self, weights):
        super().__init__()
        self.stem = conv(weights, "stem")
        self.blocks = torch.nn.Sequential()
        while f"block.{len(self.blocks)}.first.conv.weight" in weights:
            self.blocks.append(Residual(weights, f"block.{len(self.blocks)}"))
        self.head = dense(weights, "head")

    def forward(self, x):
        return self.head(self.blocks(torch.relu(self.stem(x))).mean(dim=(2, 3)))


def resnet(weights):
    return ResNet(weights), torch.nn.functional.cross_entropy


KINDS = {"mlp": mlp, "lstm": lstm, "gpt": gpt, "resnet": resnet}


def trace(step, activity):
    """The events of one step, as PyTorch's profiler exports them."""
    with torch.profiler.profile(activities=[activity], profile_memory=True) as profile:
        step()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        profile.export_chrome_trace(path)
        with open(path) as file:
            return json.load(file)["traceEvents"]


class Worker:
    def __init__(self, device):
        self.device = device

    def wait(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def run(self, steps):
        start = time.perf_counter()
        for _ in range(steps):
            self.step()
        self.wait()
        return time.perf_counter() - start


class Training(Worker):
    """Eager mode, with one of PyTorch's own implementations of Adam."""

    def __init__(self, kind, weights, device, **adam):
        super().__init__(device)
        self.batches = [(x.to(device), y.to(device)) for x, y in zip(weights["x"], weights["y"])]
        self.data_bytes = sum(x.nbytes + y.nbytes for x, y in self.batches)
        self.model, criterion = KINDS[kind](weights)
        self.model.to(device, weights[next(n for n in weights if n.endswith(".weight"))].dtype)
        self.loss = lambda x, y: criterion(self.model(x), y)
        trained = [p for p in self.model.parameters() if p.requires_grad]
        self.adam = torch.optim.Adam(trained, lr=1e-4, **adam)
        self.steps = 0

    def step(self):
        x, y = self.batches[self.steps % len(self.batches)]
        self.steps += 1
        return self.train(x, y)

    def train(self, x, y):
        self.adam.zero_grad()
        loss = self.loss(x, y)
        loss.backward()
        self.adam.step()
        return loss

    def losses(self, steps):
        return [self.step().item() for _ in range(steps)]

    def held_bytes(self):
        kept = list(self.model.parameters())
        for state in self.adam.state.values():
            kept += [value for value in state.values() if torch.is_tensor(value)]
        return sum(tensor.nbytes for tensor in kept)

    def memory(self):
        self.adam.zero_grad()  # gradients count as the step's
        return self.memory_on_gpu() if self.device.type == "cuda" else self.memory_on_cpu()

    def memory_on_gpu(self):
        torch.cuda.reset_peak_memory_stats()
        self.step()
        return self.peaks_of_gpu()

    def peaks_of_gpu(self):
        peak, held = torch.cuda.max_memory_allocated() - self.data_bytes, self.held_bytes()
        return {
            "peak_bytes": peak,
            "held_bytes": held,
            "step_bytes": peak - held,
            "reserved_bytes": torch.cuda.max_memory_reserved(),
        }

    def memory_on_cpu(self):
        """PyTorch keeps no peak for the CPU: what its profiler reports is added up.

        Those are the tensors, and what operators obtain as such. Memory that a library underneath
        (oneDNN) obtains for itself does not show.
        """
        held = self.held_bytes()
        changes = [e for e in trace(self.step, ProfilerActivity.CPU) if e["name"] == "[memory]"]
        changes.sort(key=lambda event: event["ts"])
        now = peak = 0
        for change in changes:
            now += change["args"]["Bytes"]
            peak = max(peak, now)
        return {"peak_bytes": held + peak, "held_bytes": held, "step_bytes": peak}

    def kernels(self):
        if self.device.type != "cuda":
            return None

        def step():
            self.step()
            self.wait()

        launched = {"kernel", "gpu_memcpy", "gpu_memset"}
        return sum(e.get("cat") in launched for e in trace(step, ProfilerActivity.CUDA)) or None


class RankTraining(Training):
    """One rank's part of every batch, with gradients averaged beside the backward pass."""

    def __init__(self, kind, weights, device, **adam):
        rank, ranks = dist.get_rank(), dist.get_world_size()
        parts = {name: weights[name].chunk(ranks, dim=1)[rank] for name in ("x", "y")}
        super().__init__(kind, weights | parts, device, **adam)
        self.model = DistributedDataParallel(self.model, gradient_as_bucket_view=True)

    def losses(self, steps):
        losses = torch.tensor(super().losses(steps))
        dist.all_reduce(losses)
        return (losses / dist.get_world_size()).tolist()

    def held_bytes(self):
        """The buckets of gradients too, which stay."""
        trained = [p for p in self.model.parameters() if p.requires_grad]
        return super().held_bytes() + sum(p.nbytes for p in trained)


class ShardedTraining(RankTraining):
    """Likewise with shares of parameters, gradients and moments, by FSDP2."""

    def __init__(self, kind, weights, device, **adam):
        super().__init__(kind, weights, device, **adam)
        self.model = self.model.module
        mesh = init_device_mesh(device.type, (dist.get_world_size(),))
        parts = [m for m in self.model.modules() if isinstance(m, torch.nn.ModuleList)]
        inside = (m for part in parts or [self.model] for m in part.modules())
        for layer in dict.fromkeys(m for m in inside if not list(m.children())):
            if list(layer.parameters()):
                fully_shard(layer, mesh=mesh)
        fully_shard(self.model, mesh=mesh)
        self.adam = torch.optim.Adam(self.model.parameters(), lr=1e-4, **adam)

    def held_bytes(self):
        def own(tensor):
            return tensor.to_local().nbytes if hasattr(tensor, "to_local") else tensor.nbytes

        kept = list(self.model.parameters())
        for state in self.adam.state.values():
            kept += [value for value in state.values() if torch.is_tensor(value)]
        return sum(map(own, kept))


class CapturedTraining(Training):
    """A step recorded once as a CUDA graph, whose inputs are copied to where it reads them."""

    def __init__(self, kind, weights, device):
        super().__init__(kind, weights, device, fused=True, capturable=True)
        self.x, self.y = (tensor.clone() for tensor in self.batches[0])
        start = [p.detach().clone() for p in self.model.parameters()]
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):  # libraries choose their algorithms, and Adam makes its state
                super().train(self.x, self.y)
        torch.cuda.current_stream().wait_stream(stream)
        self.adam.zero_grad()  # those of the graph come from its own memory
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.captured_loss = super().train(self.x, self.y)
        for parameter, values in zip(self.model.parameters(), start):
            fill(parameter, values)
        for state in self.adam.state.values():
            for value in state.values():
                value.zero_()

    def train(self, x, y):
        self.x.copy_(x)
        self.y.copy_(y)
        self.graph.replay()
        return self.captured_loss

    def memory(self):
        return self.peaks_of_gpu()  # a replay allocates nothing: those of warm-up and capture


class CompiledTraining(Training):
    def __init__(self, kind, weights, device):
        super().__init__(kind, weights, device, fused=True)
        self.loss = torch.compile(self.loss, mode="reduce-overhead")

    def train(self, x, y):
        torch.compiler.cudagraph_mark_step_begin()
        return super().train(x, y)

    def memory_on_gpu(self):
        return self.peaks_of_gpu()  # as where a step is captured


class Operator(Worker):
    """One operator again and again, a lower bound of a step."""

    def __init__(self, operator, device):
        super().__init__(device)
        self.operator = operator

    def step(self):
        self.operator()


def fastest(size, device, dtype):
    a, b = ((torch.rand(size, size, device=device) * 2 - 1).to(dtype) for _ in range(2))
    result = torch.empty_like(a)
    return Operator(lambda: torch.matmul(a, b, out=result), device)


def copy(size, device, _):
    source, target = (torch.zeros(size, device=device) for _ in range(2))
    return Operator(lambda: target.copy_(source), device)


def launch(_, device, __):
    x = torch.zeros(4, device=device)
    return Operator(lambda: x.add_(1), device)


BOUNDS = {"fastest": fastest, "copy": copy, "launch": launch}
MODES = [*ADAM, "graph", "compile", *BOUNDS]


def arguments():
    parser = argparse.ArgumentParser(description="Makes training steps in PyTorch.")
    parser.add_argument("--model", choices=KINDS)
    parser.add_argument("--mode", choices=MODES, required=True)
    parser.add_argument("--device", default="cpu", type=torch.device)
    parser.add_argument("--precision", choices=["f32", "tf32", "bf16"], default="f32")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--weights", help="safetensors file of weights and batches")
    parser.add_argument("--size", type=int, default=1024, help="as step_worker's")
    parser.add_argument("--ranks", action="store_true", help="a rank of a job of Open MPI")
    parser.add_argument("--shares", action="store_true", help="as step_worker's")
    return parser.parse_args()


def make_worker(options):
    if options.mode in BOUNDS:
        dtype = torch.bfloat16 if options.precision == "bf16" else torch.float32
        return BOUNDS[options.mode](options.size, options.device, dtype)
    weights = tensor_file.read(options.weights)
    if options.mode == "graph":
        return CapturedTraining(options.model, weights, options.device)
    if options.mode == "compile":
        return CompiledTraining(options.model, weights, options.device)
    if options.ranks:
        rank, ranks = (int(os.environ[f"OMPI_COMM_WORLD_{name}"]) for name in ("RANK", "SIZE"))
        meeting = f"file://{options.weights}.{options.shares}"
        dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=ranks)
        kind = ShardedTraining if options.shares else RankTraining
        return kind(options.model, weights, options.device, **ADAM[options.mode])
    return Training(options.model, weights, options.device, **ADAM[options.mode])


def answer(worker, line):
    command, *numbers = line.split()
    known = {"run", "losses", "memory", "kernels"}
    if command not in known or not hasattr(worker, command):
        raise SystemExit(f"torch_worker: unknown command '{line.strip()}'")
    return getattr(worker, command)(*map(int, numbers))


def main():
    options = arguments()
    torch.set_flush_denormal(True)  # as ebb does; threads that start later inherit it
    torch.set_num_threads(options.threads)
    torch.backends.cuda.matmul.allow_tf32 = options.precision == "tf32"
    torch.backends.cudnn.allow_tf32 = options.precision == "tf32"
    torch.manual_seed(0)
    if options.device.index is not None:
        torch.cuda.set_device(options.device)
    worker = make_worker(options)
    out = sys.stdout if not dist.is_initialized() or dist.get_rank() == 0 else io.StringIO()
    print("ready", file=out, flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(worker, line)), file=out, flush=True)


main()
