#!/usr/bin/env python3
"""Writes data/torch_*.safetensors: for each of three models its state and what it computes.

    python torch_models.py        (needs torch, safetensors and numpy; made with PyTorch 2.15)

The models are small, randomly initialised, and have the names of Hugging Face's GPT2LMHeadModel and
BertModel and of torchvision's ResNet, buffers and layouts included. "expected.*" are inputs and outputs.
"""

import pathlib

import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional as F

FEATURES, HEADS, LAYERS, TOKENS, POSITIONS = 16, 2, 2, 40, 24


def attend(q, k, v, **options):
    q, k, v = (x.unflatten(2, (HEADS, -1)).transpose(1, 2) for x in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, **options).transpose(1, 2).flatten(2)


class Conv1D(nn.Module):  # GPT-2's: a Linear with its weight [in, out]
    def __init__(self, out, features):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(features, out))
        self.bias = nn.Parameter(torch.empty(out))

    def forward(self, x):
        return x @ self.weight + self.bias


class Gpt2Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("bias", torch.ones(1, 1, POSITIONS, POSITIONS, dtype=torch.bool).tril())
        self.c_attn = Conv1D(3 * FEATURES, FEATURES)
        self.c_proj = Conv1D(FEATURES, FEATURES)

    def forward(self, x):
        return self.c_proj(attend(*self.c_attn(x).chunk(3, 2), is_causal=True))


class Gpt2Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.attn, self.ln_2 = nn.LayerNorm(FEATURES), Gpt2Attention(), nn.LayerNorm(FEATURES)
        self.mlp = nn.ModuleDict({"c_fc": Conv1D(4 * FEATURES, FEATURES), "c_proj": Conv1D(FEATURES, 4 * FEATURES)})

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp.c_proj(F.gelu(self.mlp.c_fc(self.ln_2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    def __init__(self):
        super().__init__()
        self.transformer = nn.ModuleDict({
            "wte": nn.Embedding(TOKENS, FEATURES), "wpe": nn.Embedding(POSITIONS, FEATURES),
            "h": nn.ModuleList(Gpt2Block() for _ in range(LAYERS)), "ln_f": nn.LayerNorm(FEATURES)})
        self.lm_head = nn.Linear(FEATURES, TOKENS, bias=False)
        self.lm_head.weight = self.transformer.wte.weight

    def forward(self, tokens):
        body = self.transformer
        x = body.wte(tokens) + body.wpe.weight[: tokens.shape[1]]
        for block in body.h:
            x = block(x)
        return self.lm_head(body.ln_f(x))


class BertOutput(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.dense, self.LayerNorm = nn.Linear(features, FEATURES), nn.LayerNorm(FEATURES, 1e-12)

    def forward(self, x, beside):
        return self.LayerNorm(self.dense(x) + beside)


class BertLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.ModuleDict({
            "self": nn.ModuleDict({name: nn.Linear(FEATURES, FEATURES) for name in ("query", "key", "value")}),
            "output": BertOutput(FEATURES)})
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(FEATURES, 4 * FEATURES)})
        self.output = BertOutput(4 * FEATURES)

    def forward(self, x, mask):
        own = self.attention["self"]
        x = self.attention.output(attend(own.query(x), own.key(x), own.value(x), attn_mask=mask), x)
        return self.output(F.gelu(self.intermediate.dense(x)), x)


class Bert(nn.Module):
    def __init__(self):
        super().__init__()
        self.embeddings = nn.ModuleDict({
            "word_embeddings": nn.Embedding(TOKENS, FEATURES), "position_embeddings": nn.Embedding(POSITIONS, FEATURES),
            "token_type_embeddings": nn.Embedding(2, FEATURES), "LayerNorm": nn.LayerNorm(FEATURES, 1e-12)})
        self.embeddings.register_buffer("position_ids", torch.arange(POSITIONS)[None])
        self.encoder = nn.ModuleDict({"layer": nn.ModuleList(BertLayer() for _ in range(LAYERS))})
        self.pooler = nn.ModuleDict({"dense": nn.Linear(FEATURES, FEATURES)})

    def forward(self, tokens, types, lengths):
        e = self.embeddings
        x = e.LayerNorm(e.word_embeddings(tokens) + e.token_type_embeddings(types)
                        + e.position_embeddings.weight[: tokens.shape[1]])
        mask = (torch.arange(tokens.shape[1]) < lengths[:, None])[:, None, None]
        for layer in self.encoder.layer:
            x = layer(x, mask)
        return x, torch.tanh(self.pooler.dense(x[:, 0]))


class BasicBlock(nn.Module):
    def __init__(self, channels, out, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(channels, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out)
        self.conv2, self.bn2 = nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out)
        self.downsample = None
        if stride != 1:
            self.downsample = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + (self.downsample(x) if self.downsample else x))


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8)
        self.layer1 = nn.Sequential(BasicBlock(8, 8, 1))
        self.layer2 = nn.Sequential(BasicBlock(8, 16, 2))
        self.fc = nn.Linear(16, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        return self.fc(self.layer2(self.layer1(x)).mean((2, 3)))


def save(name, model, **expected):
    tensors = model.state_dict() | {f"expected.{key}": value for key, value in expected.items()}
    tensors.pop("lm_head.weight", None)  # tied: save_pretrained leaves it out
    file = pathlib.Path(__file__).resolve().parent / "data" / f"torch_{name}.safetensors"
    save_file({key: value.detach().contiguous() for key, value in tensors.items()}, file)


def initialised(model):
    for name, parameter in model.named_parameters():
        is_scale = parameter.dim() == 1 and name.endswith("weight")
        nn.init.normal_(parameter, mean=float(is_scale), std=0.2)
    return model.eval()


torch.manual_seed(1)
with torch.no_grad():
    gpt2, bert, resnet = initialised(Gpt2()), initialised(Bert()), initialised(ResNet())

    tokens = torch.randint(TOKENS, (2, POSITIONS), dtype=torch.int32)
    written = tokens[:1, :4]
    while written.shape[1] < POSITIONS:
        written = torch.cat([written, gpt2(written)[:, -1].argmax(1, keepdim=True).int()], 1)
    save("gpt2", gpt2, tokens=tokens, scores=gpt2(tokens), written=written)

    types = torch.randint(2, tokens.shape, dtype=torch.int32)
    lengths = torch.tensor([POSITIONS, 9], dtype=torch.int32)
    sequence, pooled = bert(tokens, types, lengths)
    save("bert", bert, tokens=tokens, types=types, lengths=lengths, sequence=sequence, pooled=pooled)

    images = torch.randn(2, 3, 32, 32)
    resnet.train()
    for _ in range(3):  # for running statistics
        resnet(torch.randn(8, 3, 32, 32))
    save("resnet", resnet.eval(), images=images, scores=resnet(images))
