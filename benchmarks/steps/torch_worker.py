"""Whole training steps in PyTorch's eager mode, on request: step_worker.cpp's peer.

    python torch_worker.py MODEL ADAM THREADS WEIGHTS

ADAM is one of the ways PyTorch itself makes an Adam step: "default", "foreach" or "fused".
Commands and answers are those of step_worker.cpp.
"""

import json
import os
import sys
import tempfile
import time

os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # the profiler reports to whoever runs this

import torch
from safetensors.torch import load_file

BATCH = {"mlp": 128, "lstm": 32}
ADAM = {"default": {}, "foreach": {"foreach": True}, "fused": {"fused": True}}


def fill(tensor, values):
    with torch.no_grad():
        tensor.copy_(values)


def mlp(weights):
    layers = []
    for i, (n_in, n_out) in enumerate([(784, 512), (512, 512), (512, 10)]):
        layer = torch.nn.Linear(n_in, n_out)
        fill(layer.weight, weights[f"{i}.weight"].t())
        fill(layer.bias, weights[f"{i}.bias"])
        layers += [layer, torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers[:-1])
    return model, lambda x, y: torch.nn.functional.cross_entropy(model(x), y)


class Forecaster(torch.nn.Module):
    """PyTorch's LSTM has two biases that are added. The second is zero here and stays so."""

    def __init__(self, weights):
        super().__init__()
        self.lstm = torch.nn.LSTM(64, 256, batch_first=True)
        self.head = torch.nn.Linear(256, 1)
        fill(self.lstm.weight_ih_l0, weights["lstm.0.input"].t())
        fill(self.lstm.weight_hh_l0, weights["lstm.0.recurrent"].t())
        fill(self.lstm.bias_ih_l0, weights["lstm.0.bias"])
        fill(self.lstm.bias_hh_l0, 0)
        self.lstm.bias_hh_l0.requires_grad_(False)
        fill(self.head.weight, weights["head.weight"].t())
        fill(self.head.bias, weights["head.bias"])

    def forward(self, x):
        return self.head(self.lstm(x)[0][:, -1])


def lstm(weights):
    model = Forecaster(weights)
    return model, lambda x, y: torch.nn.functional.mse_loss(model(x), y)


class Training:
    def __init__(self, model, adam, weights):
        batch = BATCH[model]
        self.batches = list(zip(weights["x"].split(batch), weights["y"].split(batch)))
        self.model, self.loss = {"mlp": mlp, "lstm": lstm}[model](weights)
        trained = [p for p in self.model.parameters() if p.requires_grad]
        self.adam = torch.optim.Adam(trained, lr=1e-4, **ADAM[adam])
        self.losses = []

    def step(self):
        x, y = self.batches[len(self.losses) % len(self.batches)]
        self.adam.zero_grad()
        loss = self.loss(x, y)
        loss.backward()
        self.adam.step()
        self.losses.append(loss.item())

    def run(self, steps):
        start = time.perf_counter()
        for _ in range(steps):
            self.step()
        return time.perf_counter() - start

    def memory(self):
        """PyTorch keeps no peak for the CPU: what its profiler reports is added up.

        Those are the tensors, and what operators obtain as such. Memory that a library underneath
        (oneDNN) obtains for itself does not show.
        """
        self.adam.zero_grad()  # gradients count as the step's
        kept = list(self.model.parameters())
        for state in self.adam.state.values():
            kept += [value for value in state.values() if torch.is_tensor(value)]
        held = sum(tensor.nbytes for tensor in kept)
        with torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True
        ) as profile:
            self.step()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "trace.json")
            profile.export_chrome_trace(path)
            with open(path) as file:
                events = json.load(file)["traceEvents"]
        changes = [e for e in events if e["name"] == "[memory]"]
        changes.sort(key=lambda event: event["ts"])
        now = peak = 0
        for change in changes:
            now += change["args"]["Bytes"]
            peak = max(peak, now)
        return {"peak_bytes": held + peak, "held_bytes": held, "step_bytes": peak}


def main():
    model, adam, threads, path = sys.argv[1:]
    torch.set_flush_denormal(True)  # as ebb does; threads that start later inherit it
    torch.set_num_threads(int(threads))
    torch.manual_seed(0)
    training = Training(model, adam, load_file(path))
    print("ready", flush=True)
    for line in sys.stdin:
        command, *arguments = line.split()
        if command == "run":
            answer = training.run(int(arguments[0]))
        elif command == "losses":
            answer = training.losses
        elif command == "memory":
            answer = training.memory()
        else:
            raise SystemExit(f"torch_worker: unknown command '{line.strip()}'")
        print(json.dumps(answer), flush=True)


main()
