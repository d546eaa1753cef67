/** What a cell printed, of each stream; and the largest rich output, in characters. */
const KEPT = 200_000;

/**
 * Keeps Python's names from one cell to the next: a cell is a line with a string of JSON, the answer a line of JSON. What the code
 * prints goes to files that have no name, so that also what its processes print is caught. Code that meddles with this harms
 * its own session only.
 */
export const KERNEL_DRIVER = `
import ast, json, os, sys, tempfile, traceback
cells, answers = (os.fdopen(os.dup(number), mode, encoding="utf-8") for number, mode in ((0, "r"), (1, "w")))
nowhere = os.open(os.devnull, os.O_RDWR)
for number in (0, 1, 2): os.dup2(nowhere, number)
sys.argv = [""]
sys.path.insert(0, "")
names = {"__name__": "__main__", "__builtins__": __builtins__}
count = 0
RICH = (("text/html", "_repr_html_"), ("image/svg+xml", "_repr_svg_"), ("text/markdown", "_repr_markdown_"),
        ("application/json", "_repr_json_"), ("image/png", "_repr_png_"))

def bundle(value):
    data = {"text/plain": repr(value)[:${KEPT}]}
    for mime, method in RICH:
        try:
            made = getattr(value, method)() if hasattr(type(value), method) else None
            if isinstance(made, bytes):
                import base64
                made = base64.b64encode(made).decode()
            if made is not None and not isinstance(made, str): made = json.dumps(made)
            if made is not None and len(made) <= ${KEPT}: data[mime] = made
        except Exception: pass
    return data

def run(code):
    tree = ast.parse(code, "<cell>")
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<cell>", "exec"), names)
    if last is None: return None
    value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
    if value is None: return None
    names["_"] = value
    return bundle(value)

def cell(code):
    global count
    count += 1
    streams, saved, outputs = [], [], []
    for number, stream in ((1, sys.stdout), (2, sys.stderr)):
        caught = tempfile.TemporaryFile()
        saved.append(os.dup(number))
        os.dup2(caught.fileno(), number)
        streams.append(caught)
    error = result = None
    try:
        result = run(code)
    except BaseException as thrown:
        kind = type(thrown).__name__
        lines = traceback.format_exception(type(thrown), thrown, thrown.__traceback__)
        error = {"output_type": "error", "ename": kind, "evalue": str(thrown)[:4000],
                 "traceback": "".join(lines)[-${KEPT}:].splitlines()}
    for stream in (sys.stdout, sys.stderr):
        try: stream.flush()
        except Exception: pass
    for number, caught, name in zip((1, 2), streams, ("stdout", "stderr")):
        os.dup2(saved.pop(0), number)
        caught.seek(0)
        text = caught.read(${KEPT}).decode("utf-8", "replace")
        caught.close()
        if text: outputs.append({"output_type": "stream", "name": name, "text": text})
    if result is not None:
        outputs.append({"output_type": "execute_result", "data": result, "metadata": {}, "execution_count": count})
    if error is not None: outputs.append(error)
    return {"status": "ok" if error is None else "error", "execution_count": count, "outputs": outputs}

for line in cells:
    answers.write(json.dumps(cell(json.loads(line))) + "\\n")
    answers.flush()
`;
