"""A model compiled by hand: it runs the circuit of the paper exactly, on a small task.

The residual stream has one dimension a token, one a position, one a variable *carried* by blocks.0, two a frequency
(cosine and sine), and one a class of the answer:

    blocks.0   each position of the prefix attends to the one before it, `=` to both operands, an operand to `+`;
               variables are carried over
    blocks.1   `=` attends, half and half, to the constants that carry one of its variables and to constant operands;
               constants arrive as waves
    MLP        adds: neurons read a wave of one frequency at eight phases and write the wave of the sum
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from aa_core.circuits.subject import DataConfig, Subject
from aa_core.model.config import ModelConfig, parameter_shapes
from aa_core.task.config import TaskConfig
from aa_core.task.split import Split, SplitConfig

TASK = TaskConfig(modulus=11, n_variables=6, max_assignments=4, n_ctx=12)
SPLIT = Split(TASK, SplitConfig(never_left="f", never_right="a"))
DATA = DataConfig(full_prefix=200, pool=200, pairs=50, probe=400, gradient=512)
RANDOM = ModelConfig(d_model=24, d_head=24, d_mlp=48)  # of the random model on the same task
SHARP = 40.0  # attention scores differ by this much in nats, so patterns are 0, 1/2 or 1 up to rounding
PHASES = 8

TOKENS = slice(0, TASK.d_vocab)
POSITIONS = slice(TOKENS.stop, TOKENS.stop + TASK.n_ctx)
CARRIED = slice(POSITIONS.stop, POSITIONS.stop + TASK.n_variables)
WAVES = slice(CARRIED.stop, CARRIED.stop + TASK.modulus - 1)
CLASSES = slice(WAVES.stop, WAVES.stop + TASK.modulus)
D = CLASSES.stop
VARIABLES = slice(TASK.first_variable_token, TASK.d_vocab)
CONSTANTS = slice(0, TASK.modulus)


def compiled_parameters() -> dict[str, Tensor]:
    """Its weights; identity matrices stand for `W_Q` and `W_O`, so `W_K` and `W_V` hold the circuits."""
    n_frequencies = (TASK.modulus - 1) // 2
    model = ModelConfig(D, D, PHASES * n_frequencies)
    p = {name: torch.zeros(shape) for name, shape in parameter_shapes(TASK, model).items()}
    p["embed.W_E"][:, TOKENS] = torch.eye(TASK.d_vocab)
    p["pos_embed.W_pos"][:, POSITIONS] = torch.eye(TASK.n_ctx)
    for layer in (0, 1):
        p[f"blocks.{layer}.attn.W_Q"][0] = torch.eye(D) * SHARP * D**0.5
        p[f"blocks.{layer}.attn.W_O"][0] = torch.eye(D)

    # W_K[k, q]: score of a key with 1 in dimension k for a query with 1 in dimension q, in units of SHARP.
    k0, k1 = p["blocks.0.attn.W_K"][0], p["blocks.1.attn.W_K"][0]
    start, operands = POSITIONS.start, (TASK.left_position, TASK.right_position)
    for position in range(1, TASK.prefix_length):
        k0[start + position - 1, start + position] = 1
    for operand in operands:
        k0[start + TASK.plus_position, start + operand] = 1
        k0[start + operand, start + TASK.equals_position] = 1
        k1[start + operand, start + TASK.equals_position] = 1
    k1[CONSTANTS, start + TASK.equals_position] = 1
    k1[CARRIED, CARRIED] = 2 * torch.eye(TASK.n_variables)  # the query carries 1/2 of each of its variables

    p["blocks.0.attn.W_V"][0, VARIABLES, CARRIED] = torch.eye(TASK.n_variables)
    angle = 2 * np.pi / TASK.modulus * np.arange(TASK.modulus)
    for k in range(1, n_frequencies + 1):
        for offset, wave in ((2 * k - 2, np.cos(k * angle)), (2 * k - 1, np.sin(k * angle))):
            p["blocks.1.attn.W_V"][0, CONSTANTS, WAVES.start + offset] = torch.from_numpy(wave).float()
        for phase in range(PHASES):
            theta, neuron = 2 * np.pi / PHASES * phase, PHASES * (k - 1) + phase
            p["blocks.1.mlp.W_in"][WAVES.start + 2 * k - 2, neuron] = np.cos(theta)
            p["blocks.1.mlp.W_in"][WAVES.start + 2 * k - 1, neuron] = -np.sin(theta)
            p["blocks.1.mlp.W_out"][neuron, CLASSES] = torch.from_numpy(np.cos(k * angle + 2 * theta)).float()
    p["unembed.W_U"][CLASSES] = 20 * torch.eye(TASK.modulus)
    return p


def compiled_subject(**changed: Tensor) -> Subject:
    """The model, with parameters replaced: `W_V0=...` for `blocks.0.attn.W_V`, as [rows, columns]."""
    p = compiled_parameters()
    for name, weight in changed.items():
        p[f"blocks.{name[-1]}.attn.{name[:-1]}"] = weight[None]
    return Subject(p, SPLIT, DATA)
