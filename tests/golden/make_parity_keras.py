"""The rows of make_parity_tensorflow.py that are about networks, and programs of TensorFlow 1."""

import keras
import numpy as np
import tensorflow as tf

from parity_rows import calls_of

tf1 = tf.compat.v1
random = np.random.default_rng(8)
STEPS = 5


def normal(*shape):
    return random.standard_normal(shape)


def made(name):
    """What the call in a row's name gives."""
    return calls_of(name, {"tf1": tf1, "keras": keras})[0][1]()


A, B = normal(2, 4), normal(2, 4)


def make_functions(row):
    nn = tf.nn
    row("tf.nn.relu(x), tf.nn.elu(x), tf.nn.selu(x), tf.nn.silu(x)", A)
    row("tf.nn.relu6(x)", np.array([-1.0, 0.5, 7.0]))
    row("tf.nn.leaky_relu(x)", A)
    row("tf.nn.gelu(x), tf.nn.gelu(x, approximate=True)", A)
    row("tf.nn.softplus(x), tf.nn.softsign(x)", A)
    row("tf.nn.softmax(x), tf.nn.log_softmax(x, axis=0)", A)
    row("tf.nn.bias_add(x, b), tf.nn.xw_plus_b(x, w, b)",
        lambda x, w, b: (nn.bias_add(x @ w, b), tf1.nn.xw_plus_b(x, w, b)), A, normal(4, 3), normal(3))
    image = normal(2, 5, 6, 4)
    row("tf.nn.conv2d(x, w, 1, 'VALID')", image, normal(3, 2, 4, 3))
    row("tf.nn.conv2d(x, w, 2, 'SAME')", image, normal(3, 3, 4, 2))
    row("tf.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], 'VALID')", image, normal(3, 2, 4, 2))
    row("tf.nn.max_pool2d(x, 2, 2, 'VALID')", image)
    row("tf.nn.max_pool2d(x, 3, 2, 'SAME')", -abs(image))
    row("tf.nn.avg_pool2d(x, 3, 2, 'SAME')", normal(1, 5, 5, 2))
    row("tf.nn.batch_normalization(x, m, v, b, w, 1e-3)",
        lambda x, m, v, b, w: nn.batch_normalization(
            x, tf.stop_gradient(m), tf.stop_gradient(v), b, w, 1e-3), A, normal(4),
        abs(normal(4)), normal(4), normal(4))
    # f32, the only dtype of the fused operator
    one = tf.ones(4)
    row("tf1.nn.fused_batch_norm(x, w, b)",
        lambda x: tf1.nn.fused_batch_norm(x, one, one, epsilon=1e-3)[:3],
        normal(2, 3, 2, 4).astype(np.float32), gradient=False)


def make_losses(rows, row):
    nn, losses = tf.nn, tf1.losses
    scores, labels = normal(3, 4), np.array([2, 0, 3])
    probabilities = random.random((3, 4))
    probabilities /= probabilities.sum(1, keepdims=True)
    targets = random.random((2, 4))
    stop = tf.stop_gradient
    row("tf.nn.sparse_softmax_cross_entropy_with_logits(i, x)", labels, scores)
    row("tf.nn.softmax_cross_entropy_with_logits(p, x)",
        lambda p, x: nn.softmax_cross_entropy_with_logits(stop(p), x), probabilities, scores)
    row("tf.nn.sigmoid_cross_entropy_with_logits(z, x)", targets, A)
    row("tf.nn.weighted_cross_entropy_with_logits(z, x, 3.)",
        lambda z, x: nn.weighted_cross_entropy_with_logits(stop(z), x, 3.0), targets, A)

    def in_graph(loss, *arrays):
        with tf.Graph().as_default(), tf1.Session() as session:
            tensors = [tf.constant(a) for a in arrays]
            value = loss(*tensors)
            return session.run([value, *tf1.gradients(value, [t for t in tensors if t.dtype.is_floating])])

    def loss_row(name, loss, *arrays):  # f32, since its result is f32 for any input
        arrays = [a.astype(np.float32) if a.dtype.kind == "f" else a for a in arrays]
        value, *gradients = in_graph(loss, *arrays)
        found = iter(gradients)
        listed = [next(found) if a.dtype.kind == "f" else None for a in arrays]
        rows.add(name, arrays, [value], listed)

    loss_row("tf1.losses.mean_squared_error(y, x)", losses.mean_squared_error, B, A)
    loss_row("tf1.losses.absolute_difference(y, x)", losses.absolute_difference, B, A)
    loss_row("tf1.losses.huber_loss(y, x, delta=0.5)",
             lambda y, x: losses.huber_loss(y, x, delta=0.5), B, A)
    loss_row("tf1.losses.sparse_softmax_cross_entropy(i, x)", losses.sparse_softmax_cross_entropy,
             labels, scores)
    loss_row("tf1.losses.softmax_cross_entropy(p, x, label_smoothing=0.1)",
             lambda x: losses.softmax_cross_entropy(
                 tf.constant(probabilities, tf.float32), x, label_smoothing=0.1), scores)
    rows.arrays["tf1.losses.softmax_cross_entropy(p, x, label_smoothing=0.1)/x1"] = (
        probabilities.astype(np.float32))
    loss_row("tf1.losses.sigmoid_cross_entropy(z, x)",
             lambda x: losses.sigmoid_cross_entropy(tf.constant(targets, tf.float32), x), A)
    rows.arrays["tf1.losses.sigmoid_cross_entropy(z, x)/x1"] = targets.astype(np.float32)
    kept = np.array([[1.0], [0.0]])
    loss_row("tf1.losses.mean_squared_error(y, x, weights=[[1.], [0.]])",
             lambda y, x: losses.mean_squared_error(y, x, weights=kept), B, A)
    row("keras.losses.MeanSquaredError(), keras.losses.Huber(0.5)",
        lambda y, x: (keras.losses.MeanSquaredError()(y, x), keras.losses.Huber(0.5)(y, x)), B, A)
    row("keras.losses.BinaryCrossentropy(from_logits=True)",
        lambda z, x: keras.losses.BinaryCrossentropy(from_logits=True)(stop(z), x), targets, A)
    row("keras.losses.SparseCategoricalCrossentropy(from_logits=True)",
        lambda i, x: keras.losses.SparseCategoricalCrossentropy(from_logits=True)(i, x), labels, scores)
    row("keras.losses.KLDivergence()",
        lambda p, x: keras.losses.KLDivergence()(stop(p), nn.softmax(x)), probabilities, scores)


def make_layer(row, name, x, **options):
    layer = made(name)
    layer.build(x.shape)
    values = [normal(*w.shape) for w in layer.weights]

    def run(x, *_):
        layer.set_weights(values)
        return layer(x)

    row(name, run, x, *values, **options)


def make_layers(rows, row):
    make_layer(row, "keras.layers.Dense(3)", A)
    make_layer(row, "keras.layers.Conv2D(3, 2)", normal(1, 4, 3, 2))
    make_layer(row, "keras.layers.Embedding(5, 3)", np.array([[0, 4], [2, 2]]), gradient=False)
    make_layer(row, "keras.layers.LayerNormalization()", A)
    sequence = normal(2, 4, 3)
    make_layer(row, "keras.layers.LSTM(2, return_sequences=True, return_state=True)", sequence)
    make_layer(row, "keras.layers.Bidirectional(keras.layers.LSTM(2, return_sequences=True))",
               sequence, gradient=False)

    norm = keras.layers.BatchNormalization(momentum=0.9)
    norm.build((None, 4, 3))
    x = normal(2, 4, 3)
    trained = norm(tf.constant(x), training=True)
    rows.add("keras.layers.BatchNormalization(momentum=0.9)", [x],
                 [trained.numpy(), norm.moving_mean.numpy(), norm.moving_variance.numpy()])


def make_optimizers(rows, row):
    start, gradients = normal(2, 3), normal(STEPS, 2, 3)
    train = tf1.train

    def in_graph(name):
        with tf.Graph().as_default(), tf1.Session() as session:
            variable = tf1.get_variable("p", initializer=tf.constant(start), use_resource=True)
            fed = tf1.placeholder(tf.float64, start.shape)
            step = made(name).apply_gradients([(fed, variable)])
            session.run(tf1.global_variables_initializer())
            values = []
            for gradient in gradients:
                session.run(step, {fed: gradient})
                values.append(session.run(variable))
        rows.add(name, [start, gradients], [np.stack(values)])

    in_graph("tf1.train.GradientDescentOptimizer(0.1)")
    in_graph("tf1.train.MomentumOptimizer(0.1, 0.9)")
    in_graph("tf1.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True)")
    in_graph("tf1.train.AdamOptimizer(epsilon=1e-2)")
    in_graph("tf1.train.RMSPropOptimizer(0.01, epsilon=1e-2)")
    in_graph("tf1.train.AdagradOptimizer(0.1)")

    def of_keras(name):
        optimizer = made(name)
        variable, values = keras.Variable(start, dtype="float64"), []
        for gradient in gradients:
            optimizer.apply([tf.constant(gradient)], [variable])
            values.append(variable.numpy().copy())
        rows.add(name, [start, gradients], [np.stack(values)])

    of_keras("keras.optimizers.SGD(0.1, momentum=0.9)")
    of_keras("keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True)")
    of_keras("keras.optimizers.Adam(0.01, epsilon=1e-2)")
    of_keras("keras.optimizers.AdamW(0.01, weight_decay=0.1, epsilon=1e-12)")
    of_keras("keras.optimizers.RMSprop(0.01, rho=0.9, epsilon=1e-12)")
    of_keras("keras.optimizers.Lion(0.01)")

    def schedule(name, rate):
        with tf.Graph().as_default(), tf1.Session() as session:
            step = tf1.placeholder(tf.int64, [])
            value = tf.cast(rate(step), tf.float64)
            values = [session.run(value, {step: n}) for n in range(14)]
        rows.add(name, [], [np.array(values)])

    def base():
        return tf.constant(0.5, tf.float64)

    schedule("tf1.train.exponential_decay(0.5, t, 3, 0.9)",
             lambda t: train.exponential_decay(base(), t, 3, 0.9))
    schedule("tf1.train.exponential_decay(0.5, t, 3, 0.9, staircase=True)",
             lambda t: train.exponential_decay(base(), t, 3, 0.9, staircase=True))
    schedule("tf1.train.polynomial_decay(0.5, t, 10, 0.1, power=2.)",
             lambda t: train.polynomial_decay(base(), t, 10, 0.1, power=2.0))
    # takes f32 only
    schedule("tf1.train.cosine_decay(0.5, t, 10)", lambda t: train.cosine_decay(0.5, t, 10))

    two = [gradients[0], gradients[1]]
    row("tf.clip_by_norm(g, 0.7), tf.clip_by_value(g, -0.7, 0.7)", two[0], gradient=False)
    row("tf.clip_by_global_norm([g, h], 0.7)",
        lambda g, h: (lambda c: (*c[0], c[1]))(tf.clip_by_global_norm([g, h], 0.7)), *two,
        gradient=False)

    values = normal(4, 3)
    with tf.Graph().as_default(), tf1.Session() as session:
        variable = tf1.get_variable("p", initializer=tf.constant(values[0]), use_resource=True)
        fed = tf1.placeholder(tf.float64, [3])
        average = train.ExponentialMovingAverage(0.9)
        with tf.control_dependencies([variable.assign(fed)]):
            update = average.apply([variable])
        session.run(tf1.global_variables_initializer())
        averages = []
        for value in values:
            session.run(update, {fed: value})
            averages.append(session.run(average.average(variable)))
    rows.add("tf1.train.ExponentialMovingAverage(0.9)", [values], [np.stack(averages)])


def make_programs(rows):
    """Programs of TensorFlow 1: what a session gives."""
    x = normal(3)

    def program(name, build, *inputs):
        with tf.Graph().as_default(), tf1.Session() as session:
            values = build(session)
        rows.add(name, inputs, [np.asarray(value) for value in values])

    def feeds(session):
        fed = tf1.placeholder(tf.float64, [None])
        return session.run([fed * 2, tf.reduce_sum(fed)], {fed: x})

    def counter(session):
        count = tf1.get_variable("count", initializer=np.int64(0), use_resource=True)
        more = count.assign_add(2)
        session.run(tf1.global_variables_initializer())
        return [session.run(more), session.run(more), session.run(count)]

    def control(session):
        value = tf1.get_variable("v", initializer=np.float64(1), use_resource=True)
        before = tf.identity(value)
        with tf.control_dependencies([before]):
            update = value.assign(before * 10)
        with tf.control_dependencies([update]):
            after = value.read_value()
        session.run(tf1.global_variables_initializer())
        return session.run([before, after])

    def differentiate(session):
        a, b, unused = (tf.constant(v) for v in (x, x + 1, x))
        y = tf.reduce_sum(a * a * tf.stop_gradient(b))
        gradients = tf1.gradients(y, [a, b, unused])
        assert gradients[1] is None and gradients[2] is None
        return [session.run(gradients[0]), session.run(tf1.hessians(tf.reduce_sum(a**3), a)[0])]

    def conditional(session):
        flag = tf1.placeholder(tf.bool, [])
        fed = tf.constant(x)
        y = tf1.cond(flag, lambda: fed * 2, lambda: fed - 1)
        gradient = tf1.gradients(y, fed)[0]
        return [session.run(t, {flag: f}) for f in (True, False) for t in (y, gradient)]

    def loop(session):
        y = tf1.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, tf.sin(v)),
                           [tf.constant(0), tf.constant(x)])[1]
        return session.run([y])

    def scan(session):
        return session.run([tf.scan(lambda carried, value: 0.5 * carried + value, tf.constant(x))])

    sequence, kernel, bias = normal(2, 4, 3), normal(5, 8), normal(8)

    def recurrent(session):
        cell = tf1.nn.rnn_cell.BasicLSTMCell(2)
        outputs, state = tf1.nn.dynamic_rnn(cell, tf.constant(sequence), dtype=tf.float64)
        session.run([tf1.assign(v, w) for v, w in zip(tf1.trainable_variables(), (kernel, bias))])
        return session.run([outputs, state.h, state.c])

    def minimize(session):
        fed = tf1.placeholder(tf.float64, [3])
        weight = tf1.get_variable("w", initializer=np.ones(3), use_resource=True)
        loss = tf.reduce_sum(tf.square(weight - fed))
        step = tf1.train.GradientDescentOptimizer(0.1).minimize(loss)
        session.run(tf1.global_variables_initializer())
        losses = [session.run([step, loss], {fed: x})[1] for _ in range(3)]
        return [np.array(losses), session.run(weight)]

    program("tf1.placeholder, feed_dict", feeds, x)
    program("tf1.assign_add, tf1.global_variables_initializer", counter)
    program("tf.control_dependencies", control)
    program("tf1.gradients, tf.stop_gradient, tf1.hessians", differentiate, x)
    program("tf1.cond(c, f, g)", conditional, x)
    program("tf1.while_loop of 3 steps", loop, x)
    program("tf.scan", scan, x)
    program("tf1.train.Optimizer.minimize", minimize, x)
    program("tf1.nn.dynamic_rnn(tf1.nn.rnn_cell.BasicLSTMCell(2), x)", recurrent, sequence, kernel, bias)


def make(rows, row):
    make_functions(row)
    make_losses(rows, row)
    make_layers(rows, row)
    make_optimizers(rows, row)
    make_programs(rows)
    make_layer(row, "keras.layers.GRU(2, return_sequences=True, return_state=True)", normal(2, 4, 3))
