"""A model that PyTorch has made, as its state_dict, and what it computes.

    python make_torch_weights.py        (needs torch and numpy; made with PyTorch 2.15)

Writes torch_weights.safetensors: the state_dict of Model as safetensors.torch.save_file would write it,
a GRU of two layers both ways as "gru", and beside it expected.x [4, 7, 6], expected.gru [4, 7, 10],
expected.sequence [4, 7, 5], expected.scores [4, 3] and expected.hidden [4, 4], with which ebb's own layers are compared.
"""

import os

import torch

from safetensors_writer import write


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        lstm = torch.nn.LSTM(6, 5, num_layers=2, batch_first=True)
        self.encoder = torch.nn.ModuleDict({"lstm": lstm})
        self.fc = torch.nn.Sequential(
            torch.nn.Linear(5, 4), torch.nn.ReLU(), torch.nn.Linear(4, 3, bias=False)
        )
        self.embedding = torch.nn.Embedding(8, 2)
        self.norm = torch.nn.BatchNorm1d(4)
        self.conv = torch.nn.Conv1d(2, 3, 5)
        self.half = torch.nn.Linear(2, 2, bias=False).to(torch.float64)


torch.manual_seed(3)
model = Model()
for parameter in model.norm.parameters():  # else they are ones and zeros
    torch.nn.init.normal_(parameter)
model.norm(torch.randn(10, 4) * 3 + 1)
x = torch.randn(4, 7, 6)
sequence = model.encoder["lstm"](x)[0]
arrays = {name: value.numpy() for name, value in model.state_dict().items()}
arrays |= {
    "expected.x": x.numpy(),
    "expected.sequence": sequence.detach().numpy(),
    "expected.hidden": torch.relu(model.fc[0](sequence[:, -1])).detach().numpy(),
    "expected.scores": model.fc(sequence[:, -1]).detach().numpy(),
}
gru = torch.nn.GRU(6, 5, num_layers=2, batch_first=True, bidirectional=True)
arrays |= {"gru." + name: value.numpy() for name, value in gru.state_dict().items()}
arrays["expected.gru"] = gru(x)[0].detach().numpy()
write(os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch_weights.safetensors"), arrays)
