# Keeps Python's names from one piece of code to the next. What it is asked and what it answers is described in kernel.ts.
# `channel`, a reader of what is asked, comes from whoever loads this; what it answers goes to descriptor 3.
# Only the standard library is needed; where IPython can be imported, it runs and shows the code.
import ast, asyncio, base64, builtins, importlib.abc, importlib.util, inspect, io, json, linecache, math, os, signal, sys, threading, traceback, types

ANSWERS = os.dup(3)
os.close(3)
for descriptor in (ANSWERS, channel.fileno()): os.set_inheritable(descriptor, False)
PART = 16000  # characters in a line of an answer: containers pass lines on, and not too long ones
LARGEST = 2 * 1024 * 1024  # of one representation, in characters
OURS = os.getpid()


class Asked:
    """The piece of code that runs: its serial number, whether anything of it does, and the figures that were its value."""
    serial = ""
    running = False
    figures = set()


def answer(kind, **members):
    if os.getpid() != OURS: return  # a copy that the code forked has nothing to say here
    text = json.dumps({"kind": kind, **members}, ensure_ascii=True)
    parts = [text[start:start + PART] for start in range(0, len(text), PART)]
    lines = [f"{Asked.serial} {'-' if number < len(parts) else '.'} {part}\n" for number, part in enumerate(parts, 1)]
    data = "".join(lines).encode("ascii")
    while data: data = data[os.write(ANSWERS, data):]


def interrupted(_signal, _frame):
    __tracebackhide__ = True
    if Asked.running: raise KeyboardInterrupt


def refuse_input(*_given, **_named):
    __tracebackhide__ = True
    raise RuntimeError("input() is not available here: nobody is there to answer. Put the value into the code instead.")


def flush():
    for stream in (sys.stdout, sys.stderr):
        try: stream.flush()
        except Exception: pass


# --- What a value looks like ---

METHODS = {
    "text/html": "_repr_html_", "text/markdown": "_repr_markdown_", "image/svg+xml": "_repr_svg_",
    "image/png": "_repr_png_", "image/jpeg": "_repr_jpeg_", "application/pdf": "_repr_pdf_",
    "text/latex": "_repr_latex_", "application/json": "_repr_json_", "application/javascript": "_repr_javascript_",
}
DATA = "application/vnd.agentfense.data+json"
CHART = "application/vnd.agentfense.chart+json"


def bundle(value):
    """MIME types to what a value says of itself, without IPython."""
    data = {}
    if not isinstance(value, type):
        made = called(value, "_repr_mimebundle_")
        if isinstance(made, tuple): made = made[0]
        if isinstance(made, dict): data.update(made)
        for mime, method in METHODS.items():
            made = called(value, method)
            if isinstance(made, tuple): made = made[0]
            if made is not None: data.setdefault(mime, made)
    if "text/plain" not in data: data["text/plain"] = plain(value)
    return data


def called(value, method):
    try: return getattr(value, method)() if callable(getattr(type(value), method, None)) else None
    except Exception: return None


def plain(value):
    try: text = repr(value)
    except Exception as error: return f"<a {type(value).__name__}, whose repr() failed: {error!r}>"
    if not 80 <= len(text) <= 100_000 or not isinstance(value, (dict, list, tuple, set)): return text
    import pprint
    return pprint.pformat(value, sort_dicts=False)


def shown(value, data):
    """What is added to any bundle: data of tables, charts of figures, JSON of dicts and lists; all as text."""
    if type(value).__name__ == "DataFrame" and type(value).__module__.startswith("pandas"):
        try: data[DATA] = json_of(value.to_dict(orient="list"))
        except Exception: pass
    if type(value).__name__ == "Figure" and type(value).__module__.startswith("matplotlib"):
        if "image/png" not in data: data["image/png"] = png_of(value)
        Asked.figures.add(value)
        chart = chart_of(value)
        if chart is not None: data[CHART] = json_of(chart)
    if isinstance(value, (dict, list)) and "application/json" not in data:
        try: data["application/json"] = json_of(value) if len(data.get("text/plain", "")) < 100_000 else None
        except Exception: pass
    texts, dropped = {}, []
    for mime, made in data.items():
        if made is None: continue
        try:
            if isinstance(made, (bytes, bytearray)): made = base64.b64encode(made).decode("ascii")
            elif mime in ("image/png", "image/jpeg", "application/pdf"): made = "".join(str(made).split())
            elif not isinstance(made, str): made = json_of(made)
        except Exception: continue
        if len(made) <= LARGEST: texts[mime] = made
        elif mime == "text/plain": texts[mime] = made[:LARGEST]
        else: dropped.append(mime)
    return {"data": texts, "dropped": dropped}


def result(bundled, is_main):
    """Whoever reads takes what was printed before it first, and says so; what comes last need not wait for that."""
    flush()
    waits = not is_main and Asked.running and threading.current_thread() is threading.main_thread() and os.getpid() == OURS
    answer("result", main=is_main, waits=waits, **bundled)
    if waits: channel.readline()


def json_of(value):
    """What JSON has no number for is null."""
    try: return json.dumps(value, default=encodable, allow_nan=False)
    except ValueError: return json.dumps(without_nan(json.loads(json.dumps(value, default=encodable))))


def encodable(value):
    if hasattr(value, "isoformat"): return value.isoformat()
    return value.item() if callable(getattr(value, "item", None)) else str(value)


def without_nan(value):
    if isinstance(value, dict): return {name: without_nan(each) for name, each in value.items()}
    if isinstance(value, list): return [without_nan(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def show(value, is_main=False):
    result(shown(value, bundle(value)), is_main)


def display(*values, raw=False, **_named):
    for value in values:
        if raw and isinstance(value, dict): result(shown(None, dict(value)), False)
        else: publish(value)


publish = show  # IPython has its own


# --- Figures ---

def png_of(figure):
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", bbox_inches="tight")
    return buffer.getvalue()


def show_figures(*_given, **_named):
    """Every open figure of pyplot, which is then closed."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None: return
    for number in pyplot.get_fignums():
        figure = pyplot.figure(number)
        if figure not in Asked.figures and (figure.get_axes() or figure.texts): show(figure)
    pyplot.close("all")
    Asked.figures.clear()


class AfterPyplot(importlib.abc.MetaPathFinder):
    """Gives pyplot a show() that shows."""

    def find_spec(self, name, path=None, target=None):
        if name != "matplotlib.pyplot": return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None: return spec
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            module.show = show_figures
        spec.loader.exec_module = exec_module
        return spec


def chart_of(figure):
    """What is drawn, as data: lines, points, bars, pies and boxes; None where that cannot be told."""
    try: charts = [chart for axes in figure.get_axes() if (chart := chart_in(axes))]
    except Exception: return None
    if not charts: return None
    if len(charts) == 1: return charts[0]
    title = figure._suptitle.get_text() if getattr(figure, "_suptitle", None) else None
    return {"type": "superchart", "title": title, "elements": charts}


def chart_in(axes):
    from matplotlib import container, patches
    title = axes.get_title() or None
    wedges = [patch for patch in axes.patches if isinstance(patch, patches.Wedge)]
    if wedges:
        elements = [{"label": wedge.get_label(), "angle": round(abs(wedge.theta2 - wedge.theta1), 6), "radius": wedge.r} for wedge in wedges]
        return {"type": "pie", "title": title, "elements": elements}
    common = {"title": title, "x_label": axes.get_xlabel() or None, "y_label": axes.get_ylabel() or None, "x_unit": None, "y_unit": None}
    if boxes := boxes_in(axes): return {"type": "box_and_whisker", **common, "elements": boxes}
    groups = [group for group in axes.containers if isinstance(group, container.BarContainer)]
    if groups: return {"type": "bar", **common, "elements": bars_in(axes, groups)}
    scales = {}
    for name, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
        scales[f"{name}_ticks"] = simple(axis.get_majorticklocs())
        scales[f"{name}_tick_labels"] = [label.get_text() for label in axis.get_majorticklabels()]
        scales[f"{name}_scale"] = axis.get_scale()
    lines = [line for line in axes.get_lines() if len(line.get_xdata())]
    if lines:
        elements = [{"label": line.get_label(), "points": points(line.get_xdata(), line.get_ydata())} for line in lines]
        return {"type": "line", **common, **scales, "elements": elements}
    clouds = [(cloud, offsets) for cloud in axes.collections if type(cloud).__name__ == "PathCollection" and len(offsets := cloud.get_offsets())]
    if clouds:
        elements = [{"label": cloud.get_label(), "points": points(offsets[:, 0], offsets[:, 1])} for cloud, offsets in clouds]
        return {"type": "scatter", **common, **scales, "elements": elements}
    return None


def bars_in(axes, groups):
    def name_at(axis, place):
        for tick, label in zip(axis.get_majorticklocs(), axis.get_majorticklabels()):
            if abs(tick - place) < 1e-6 and label.get_text(): return label.get_text()
        return str(simple([place])[0])
    bars = []
    for group in groups:
        lying = getattr(group, "orientation", None) == "horizontal"
        for bar in group.patches:
            place = bar.get_y() + bar.get_height() / 2 if lying else bar.get_x() + bar.get_width() / 2
            value = bar.get_width() if lying else bar.get_height()
            bars.append({"label": name_at(axes.yaxis if lying else axes.xaxis, place), "group": group.get_label(), "value": simple([value])[0]})
    return bars


def boxes_in(axes):
    """A box of boxplot() is a closed line of five points, or a patch; whiskers, caps and the median are lines at its middle."""
    lines = [(list(line.get_xdata()), list(line.get_ydata())) for line in axes.get_lines()]
    closed = [(xs, ys) for xs, ys in lines if len(xs) == 5 and xs[0] == xs[4] and ys[0] == ys[4] and len(set(xs)) == 2 and len(set(ys)) == 2]
    for patch in axes.patches:
        if type(patch).__name__ == "PathPatch" and len(vertices := patch.get_path().vertices) >= 5:
            closed.append(([x for x, _ in vertices[:5]], [y for _, y in vertices[:5]]))
    boxes = []
    ticks = {round(float(at), 6): label.get_text() for at, label in zip(axes.get_xticks(), axes.get_xticklabels())}
    for xs, ys in closed:
        left, right, low, high = min(xs), max(xs), min(ys), max(ys)
        middle = (left + right) / 2
        flat = [ys[0] for xs, ys in lines if len(xs) == 2 and xs[0] != xs[1] and ys[0] == ys[1] and abs(sum(xs) / 2 - middle) < 1e-9]
        if len(flat) < 3: continue
        *caps, median = flat  # in the order in which they are drawn
        outliers = [y for xs, ys in lines if len(xs) != 2 and all(abs(x - middle) < 1e-9 for x in xs) for y in ys]
        numbers = simple([min(caps), low, median, high, max(caps)])
        names = ("min", "first_quartile", "median", "third_quartile", "max")
        boxes.append({"label": ticks.get(round(float(middle), 6), ""), **dict(zip(names, numbers)), "outliers": simple(outliers)})
    return boxes


def points(xs, ys):
    return [list(pair) for pair in zip(simple(xs), simple(ys))]


def simple(values):
    made = [value if isinstance(value, (int, float, str)) else encodable(value) for value in values]
    return [float(value) if isinstance(value, float) else value for value in made]


# --- Without IPython ---

class PlainInterpreter:
    name = "python"

    def __init__(self):
        self.names = {"__name__": "__main__", "__builtins__": builtins, "display": display}
        module = types.ModuleType("__main__")
        module.__dict__.update(self.names)
        sys.modules["__main__"] = module
        self.names = module.__dict__
        self.loop = None

    def run(self, code, number):
        """None, or the error as name, value and traceback."""
        file = f"<code {number}>"
        linecache.cache[file] = (len(code), None, code.splitlines(True), file)
        try:
            tree = compile(code, file, "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) and not code.rstrip().endswith(";") else None
            self.carry_out(compile(tree, file, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT))
            if last is not None:
                value = self.carry_out(compile(ast.Expression(last.value), file, "eval", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT))
                if value is not None:
                    self.names["_"] = value
                    show(value, is_main=True)
            show_figures()
        except SystemExit as error:
            value = "" if error.code is None else str(error.code)
            return {"name": "SystemExit", "value": value, "traceback": f"SystemExit: {value}\n"}
        except BaseException as error:
            return self.told(error)
        return None

    def carry_out(self, code):
        value = eval(code, self.names)
        if not code.co_flags & inspect.CO_COROUTINE: return value
        if self.loop is None:
            self.loop = asyncio.new_event_loop()
            asyncio.set_event_loop(self.loop)
        task = self.loop.create_task(value)
        try: return self.loop.run_until_complete(task)
        except BaseException:
            if not task.done():  # interrupted: the code gets its chance to tidy up
                task.cancel()
                try: self.loop.run_until_complete(task)
                except BaseException: pass
            raise

    def told(self, error):
        told = each = traceback.TracebackException(type(error), error, error.__traceback__)
        while each is not None:  # what runs the code is no part of it
            each.stack = traceback.StackSummary.from_list([frame for frame in each.stack if frame.filename != "<agentfense>"])
            each = each.__cause__ or each.__context__
        return {"name": type(error).__name__, "value": worded(error), "traceback": "".join(told.format())}


def worded(error):
    try: return str(error)
    except Exception: return ""


# --- With IPython ---

def ipython_interpreter():
    import tempfile
    from IPython.core.displayhook import DisplayHook
    from IPython.core.displaypub import DisplayPublisher
    from IPython.core.history import HistoryManager
    from IPython.core.interactiveshell import InteractiveShell
    HistoryManager.enabled = False

    class Hook(DisplayHook):
        value = None

        def __call__(self, result=None):
            self.value = result
            try: super().__call__(result)
            finally: self.value = None

        def write_output_prompt(self): pass

        def write_format_data(self, format_dict, md_dict=None):
            result(shown(self.value, dict(format_dict)), True)

        def finish_displayhook(self): pass

    class Publisher(DisplayPublisher):
        def publish(self, data, metadata=None, **_named):
            result(shown(None, dict(data)), False)

        def clear_output(self, wait=False): pass

    class Shell(InteractiveShell):
        told = None

        def _showtraceback(self, etype, evalue, stb): self.told = "\n".join(stb)
        def showindentationerror(self): self.showsyntaxerror()
        def enable_gui(self, gui=None): pass
        def enable_matplotlib(self, gui=None): return "agg", "agg"
        def raw_input(self, *_given): refuse_input()
        def ask_exit(self): raise SystemExit

        def system(self, command):  # no terminal: what it prints is the code's output
            flush()
            self.system_raw(command)

    class IPythonInterpreter:
        name = "ipython"

        def __init__(self):
            # Nothing is written into a home, which may be the workspace.
            place = tempfile.mkdtemp(prefix="ipython-")
            self.shell = Shell.instance(displayhook_class=Hook, display_pub_class=Publisher, ipython_dir=place)
            sys.displayhook = self.shell.displayhook

        def run(self, code, number):
            self.shell.told = None
            self.shell.execution_count = number
            result = self.shell.run_cell(code, store_history=True)
            error = result.error_before_exec or result.error_in_exec
            if error is None:
                show_figures()
                return None
            return {"name": type(error).__name__, "value": worded(error), "traceback": self.shell.told or repr(error)}

    def publish_by_ipython(value):
        from IPython.core.interactiveshell import InteractiveShell
        made, _metadata = InteractiveShell.instance().display_formatter.format(value)
        result(shown(value, made or bundle(value)), False)

    globals()["publish"] = publish_by_ipython
    import IPython.display, IPython.core.display_functions
    interpreter = IPythonInterpreter()
    # So that what display() is given is known by more than its pictures.
    interpreter.shell.user_ns["display"] = builtins.display = display
    IPython.display.display = display
    return interpreter


def bring(variables):
    """Sets variables of the environment; gives what puts them back."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)

    def put_back():
        for name, value in before.items():
            if value is None: os.environ.pop(name, None)
            else: os.environ[name] = value
    return put_back


def main():
    signal.signal(signal.SIGINT, interrupted)
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        stream = open(descriptor, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    sys.argv = [""]
    builtins.input = refuse_input
    builtins.display = display
    os.environ.setdefault("MPLBACKEND", "Agg")
    sys.meta_path.insert(0, AfterPyplot())
    try: interpreter = ipython_interpreter() if importlib.util.find_spec("IPython") else PlainInterpreter()
    except Exception: interpreter = PlainInterpreter()
    builtins.input = refuse_input
    sys.path.insert(0, "")
    count = 0
    answer("ready", interpreter=interpreter.name)
    while True:
        line = channel.readline()
        if not line: break
        if not line.strip(): continue  # the answer to a result whose code was interrupted meanwhile
        asked = json.loads(line)
        Asked.serial = asked["serial"]
        if asked["code"].strip(): count += 1
        answer("started", count=count)
        put_back = bring(asked["env"])
        error = None
        try:
            Asked.running = True
            try: error = interpreter.run(asked["code"], count)
            finally: Asked.running = False
        except KeyboardInterrupt:  # it came between two steps of ours
            error = {"name": "KeyboardInterrupt", "value": "", "traceback": "KeyboardInterrupt\n"}
        put_back()
        flush()
        if os.getpid() != OURS: os._exit(0)
        if error is not None: answer("error", **{name: text[-LARGEST // 8:] for name, text in error.items()})
        answer("end")
        sys.last_value = None


main()
