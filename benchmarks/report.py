"""The figures as people read them: tables of at most 80 columns."""

from steps.inputs import MODELS
from steps.race import CPP


def mib(count):
    return f"{count / 2**20:.1f}"


def micro(figures):
    def row(words, values, bound=""):
        cells = "".join(f"{value:>10}" for value in values)
        return f"{words:<40}{cells:<30}{bound:>10}".rstrip()

    def operators(words, name, bound=""):
        return row(words, [f"{value:.0f}" for value in figures[name].values()], bound)

    pair, tiny = figures["free_and_allocate"], figures["tiny_mlp"]
    return "\n".join(
        [
            row("Overhead, ns (median of five)", ["add", "multiply", "tanh"], "at most"),
            operators("eager operator on 4 floats, no tape", "untaped"),
            operators("  with its record, freed again", "taped", "180"),
            operators("  forward and backward, chain of 1,000", "chain"),
            row("free and allocation, from the cache", [f"{pair['ebb']:.1f}"], "40"),
            row("  of malloc", [f"{pair['malloc']:.1f}"]),
            row(
                "prepared graph step, above its kernels",
                [f"{figures['prepared_step']:.0f}"],
                "1000",
            ),
            row("  and for each node", [f"{figures['prepared_node']:.1f}"], "20"),
            row("MLP 8-16-4, batch 4, Adam: eager step", [f"{tiny['eager']:.0f}"]),
            row("  graph step", [f"{tiny['graph']:.0f}"]),
        ]
    )


def steps(result):
    threads = f"{result['threads']} thread{'s' if result['threads'] > 1 else ''}"
    lines = [
        f"{MODELS[result['model']].title}, {threads}",
        f"{'':<17}{'ms':>7}  {'x PyTorch (quartiles)':<21}"
        f"{'bound':>7}{'ceiling':>9}{'peak MiB':>10}{'above':>7}",
    ]
    rows = [name for name in result["workers"] if name.startswith("ebb")]
    rows += [name for name in result["workers"] if name in (result["peer"], CPP)]
    for name in rows:
        worker = result["workers"][name]
        ratio, memory = worker["speed_beside_peer"], worker["memory"]
        spread = f"({ratio['low']:.2f}-{ratio['high']:.2f})" if name != result["peer"] else ""
        speed = f"{ratio['median']:.2f} {spread}"
        lines.append(
            f"{name:<17}{worker['step_seconds'] * 1e3:>7.2f}  {speed:<21}"
            f"{worker['share_of_bound'] * 100:>5.0f} %{worker['share_of_fastest'] * 100:>7.0f} %"
            f"{mib(memory['peak_bytes']):>10}{mib(memory['step_bytes']):>7}"
        )
    bound = result["bound"]
    products, stream = bound["products_seconds"], bound["stream_seconds"]
    others = [
        f"{name.split()[1]} {worker['step_seconds'] * 1e3:.2f}"
        for name, worker in result["workers"].items()
        if name not in rows
    ]
    lines += [
        f"  bound: products {products * 1e3:.2f} + Adam's bytes {stream * 1e3:.2f} ms; fastest "
        f"product {bound['fastest_operations_per_second'] / 1e9:.0f} GFLOP/s",
        f"  PyTorch: {', '.join(others)} ms",
        f"  losses within {result['largest_loss_difference']:.0e}",
    ]
    lines += [f"  {name}: left out, {why}" for name, why in result["left_out"].items()]
    if not result["quiet"]:
        lines.append(
            f"  NOT TO BE BELIEVED: other programs took up to {result['processors_others_took']:.1f}"
            " processors"
        )
    return "\n".join(lines)


def machine(figures):
    load = ", ".join(f"{value:.1f}" for value in figures["load"])
    versions = figures["versions"]
    by = {result["ebb_products_by"] for result in figures.get("steps", [])}
    products = f" with {by.pop()}'s products" if by else ""
    return "\n".join(
        [
            f"{figures['cpu']}, {figures['cores']} cores; load before and after: {load}",
            f"ebb {versions['ebb']}{products}, PyTorch {versions['torch']}, {figures['date']}",
        ]
    )


EXPLANATION = """\
x PyTorch: how many times as fast, of pairs of runs side by side; PyTorch's
fastest way counts. bound: the time of the products and of Adam's bytes alone,
as a share of the step's; an operator that packs its weights once for many
products can pass it. ceiling: the same, all products at the fastest one's rate.
peak: most bytes at once in a step, without the batch; above: of these, more
than parameters and optimizer state. ebb's include workspaces, PyTorch's leave
out what its libraries (oneDNN, MKL) obtain for themselves."""
