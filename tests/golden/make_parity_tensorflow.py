"""What TensorFlow and Keras compute in the rows of docs/coming-from.md.

    python make_parity_tensorflow.py   (needs tensorflow and tf_keras, which has TensorFlow 1's cells;
                                        made with tensorflow-cpu 2.21, Keras 3.15, tf_keras 2.21)

Writes parity_tensorflow.safetensors; how, is said in parity_rows.py. A row's name is the first cell
of its line in the page; tf1 is tf.compat.v1, whose programs are run in its sessions.
"""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["TF_USE_LEGACY_KERAS"] = "1"
import keras
import numpy as np
import tensorflow as tf

import make_parity_keras
from parity_rows import Rows, all_of, calls_of, weights

HERE = os.path.dirname(os.path.abspath(__file__))
tf1 = tf.compat.v1
keras.config.set_floatx("float64")
rows = Rows()
random = np.random.default_rng(7)


def normal(*shape):
    return random.standard_normal(shape)


A, B, C, X = normal(2, 3), normal(2, 3), normal(3, 4), normal(2, 3, 4)
I32 = np.array([[7, -7, 3], [-8, 2**31 - 1, 0]], np.int32)
BY = np.array([[2, 2, -2], [3, 3, 5]], np.int32)
TIES = np.array([[3.0, 1.0, 3.0, 2.0], [2.0, 2.0, 5.0, 2.0]])
FLAGS = np.array([[True, False, True], [False, False, False]])
HALVES = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 2.4, 2.6])


def row(name, *given, gradient=True):
    """Runs the function that is given before the inputs, or the calls in the row's name: eagerly, with
    the gradients of a tape."""
    function, *inputs = given if given and callable(given[0]) else [
        all_of([f for _, f in calls_of(name, {"tf": tf, "tf1": tf1})]), *given]
    tensors = [tf.constant(x) for x in inputs]
    floating = [t for t in tensors if t.dtype.is_floating] if gradient else []
    with tf.GradientTape() as tape:
        for t in floating:
            tape.watch(t)
        outputs = function(*tensors)
        listed = list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]
        listed = [tf.convert_to_tensor(y) for y in listed]
        smooth = [y for y in listed if y.dtype.is_floating]
        total = tf.add_n([tf.cast(tf.reduce_sum(y * tf.cast(weights(y.shape), y.dtype)), tf.float64)
                          for y in smooth]) if smooth else None
    gradients = [None] * len(tensors)
    if floating and smooth:
        found = iter(tape.gradient(total, floating))
        gradients = [next(found) if t.dtype.is_floating else None for t in tensors]
        gradients = [None if g is None else tf.convert_to_tensor(g).numpy() for g in gradients]
    rows.add(name, inputs, [y.numpy() for y in listed], gradients)


def make_creation():
    row("tf.constant([[1., 2.]])")
    row("tf.zeros([2, 3]), tf.fill([2, 3], 0.1)")
    row("tf.zeros_like(x), tf.ones_like(x)", I32)
    row("tf.range(2, 9, 3)")
    row("tf.linspace(1., 2., 5)")
    row("tf.eye(2, 3)")
    row("tf.one_hot(i, 4)", np.array([2, 0, 7, -1]))
    row("tf.cast(x, tf.int32)", np.array([2.7, -2.7, 0.5, -0.5]))
    row("tf.linalg.band_part(x, -1, 0)", X)


def make_shape():
    row("tf.reshape(x, [3, -1])", X)
    row("tf.expand_dims(x, 1), tf.squeeze(x, [1])",
        lambda x, y: (tf.expand_dims(x, 1), tf.squeeze(y, [1])), A, normal(2, 1))
    row("tf.transpose(x, [2, 0, 1])", X)
    row("tf.transpose(x)", X)
    row("tf.concat([x, y], 1), tf.stack([x, y], 1)", A, B)
    row("tf.unstack(x, axis=1)", A)
    row("tf.split(x, 2, 2)", X)
    row("tf.split(x, [1, 3], 2)", X)
    row("tf.slice(x, [0, 1, 1], [2, 1, 3])", X)
    row("x[:, ::-1, 1::2]", X)
    row("tf.tile(x, [2, 3])", A)
    row("tf.repeat(x, 2, axis=0)", A)
    row("tf.broadcast_to(x, [2, 3])", normal(3))
    row("tf.pad(x, [[0, 3], [1, 2]], constant_values=v)",
        lambda x: tf.pad(x, [[0, 3], [1, 2]], constant_values=0.5), A)
    row("tf.reverse(x, [1])", X)
    row("tf.shape(x)[0]", X)
    row("tf.gather(x, i, axis=1)", X, np.array([2, 0, 2]))
    row("tf.gather(x, i, axis=1, batch_dims=1)", A, np.array([[2, 0], [1, 2]]))
    row("tf.nn.embedding_lookup(w, i)", C, np.array([[2, 0], [1, 2]]))
    row("tf.math.unsorted_segment_sum(x, i, 3)", C, np.array([2, 0, 2]))
    row("tf.where(c, x, y)", FLAGS, A, B)
    row("tf.reverse_sequence(x, n, seq_axis=1)", X, np.array([3, 2]))


def make_arithmetic():
    row("tf.add(x, y), tf.subtract(x, y), tf.multiply(x, y), tf.divide(x, y)", A, B)
    row("tf.truediv(i, j) of int32", lambda i, j: tf.truediv(i, j), I32, BY)
    row("tf.math.floordiv(i, j), tf.math.floormod(i, j)", I32, BY)
    row("tf.truncatediv(i, j), tf.truncatemod(i, j)", I32, BY)
    row("tf.math.divide_no_nan(x, y)", np.array([1.0, 2.0, -3.0]), np.array([2.0, 0.0, 4.0]))
    row("tf.exp(x), tf.sin(x), tf.cos(x), tf.tanh(x), tf.square(x)", A)
    row("tf.math.log(x), tf.math.log1p(x), tf.sqrt(x), tf.math.rsqrt(x), tf.pow(x, y)",
        abs(A) + 0.5, B)
    row("tf.math.erf(x), tf.math.expm1(x), tf.math.sigmoid(x)", A)
    row("tf.round(x), tf.floor(x), tf.math.ceil(x)", HALVES, gradient=False)
    row("tf.abs(x), tf.sign(x)", np.array([-1.5, 0.0, 2.0]))
    row("tf.maximum(x, y), tf.minimum(x, y)", A, B)
    row("tf.maximum(nan, y)", lambda x, y: (tf.maximum(x, y), tf.minimum(x, y)),
        np.array([np.nan, 1.0]), np.array([1.0, np.nan]), gradient=False)

    def at_ties():
        x = tf.constant([1.0, 2.0], tf.float64)
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = tf.identity(x)
            tape.watch(y)
            largest = tf.maximum(x, y)
        return tape.gradient(largest, [x, y], unconnected_gradients="zero")[1]

    row("the gradient of tf.maximum at ties", at_ties)
    row("tf.clip_by_value(x, -1., 1.)", np.array([-2.0, -1.0, 0.5, 1.0, 3.0]))
    row("tf.math.squared_difference(x, y)", A, B)
    row("tf.equal(x, y), tf.less(x, y), tf.logical_not(c), tf.math.is_nan(x)",
        np.array([1.0, np.nan, 0.0]), np.array([1.0, np.nan, 0.5]), FLAGS)


def make_reductions():
    row("tf.reduce_sum(x), tf.reduce_sum(x, 1, keepdims=True), tf.reduce_mean(x, [0, 2])", X)
    row("tf.reduce_sum(x) of int32", lambda x: tf.reduce_sum(x), np.array([2**31 - 1, 5], np.int32))
    row("tf.reduce_mean(x) of int32", lambda x: tf.reduce_mean(x), np.array([7, -8, 2], np.int32))
    row("tf.reduce_max(x, 1), tf.reduce_min(x, 1)", TIES)
    row("tf.reduce_max(nan)", lambda x: (tf.reduce_max(x), tf.reduce_min(x)),
        np.array([1.0, np.nan, 3.0]), gradient=False)
    row("tf.reduce_max of nothing", lambda x: tf.reduce_max(x, 1), np.zeros((2, 0)), gradient=False)
    row("tf.argmax(x), tf.argmin(x, 1)", TIES)
    row("tf.argmax(nan)", lambda x: tf.argmax(x), np.array([1.0, np.nan, 3.0]))
    row("tf.reduce_any(c, 1), tf.reduce_all(c, 1)", FLAGS)
    row("tf.math.reduce_variance(x, 1), tf.math.reduce_std(x, 1)", C)
    row("tf.nn.moments(x, [0])", C)
    row("tf.reduce_logsumexp(x, 1)", C)
    row("tf.norm(x, axis=1)", C)

    def at_zero():
        x = tf.zeros(3, tf.float64)
        with tf.GradientTape() as tape:
            tape.watch(x)
            length = tf.norm(x)
        return tape.gradient(length, x)

    row("the gradient of tf.norm at 0", at_zero)
    row("tf.cumsum(x, 1, exclusive=True, reverse=True)", C)
    row("tf.math.count_nonzero(x)", I32)
    row("tf.nn.l2_loss(x)", A)
    row("tf.math.l2_normalize(x, 1)", A)
    row("tf.sort(x, direction='DESCENDING'), tf.argsort(x)", C)
    row("tf.math.top_k(x, 2)", TIES)
    row("tf.matmul(x, y, transpose_b=True)", X, normal(2, 2, 4))
    row("tf.linalg.matvec(x, v), tf.tensordot(x, v, 1)", X, normal(4))


make_creation()
make_shape()
make_arithmetic()
make_reductions()
make_parity_keras.make(rows, row)
rows.write(os.path.join(HERE, "parity_tensorflow.safetensors"))
