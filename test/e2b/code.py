"""What a program does with E2B's code interpreter, in both faces of its client; prints what went well."""

import asyncio
import inspect
import sys

import e2b_code_interpreter as e2b

ASYNC = sys.argv[1] == "async"
Sandbox = e2b.AsyncSandbox if ASYNC else e2b.Sandbox


async def of(value):
    """What a call gives, in either face."""
    return await value if inspect.isawaitable(value) else value


async def failure(call):
    try:
        await of(call())
    except Exception as error:
        return error
    raise AssertionError("nothing was refused")


async def main():
    sandbox = await of(Sandbox.create(envs={"A": "1"}))
    execution = await of(sandbox.run_code("import os\nx = 20\nprint('ä')\nx + int(os.environ['A'])"))
    assert (execution.text, execution.logs.stdout, execution.execution_count) == ("21", ["ä\n"], 1), execution
    assert (await of(sandbox.run_code("'text'"))).text == "text"
    print("value")

    heard = []
    code = "display({'k': 1})\nprint('out')\nimport sys; print('err', file=sys.stderr)\n{'main': [1, 2]}"
    execution = await of(
        sandbox.run_code(
            code,
            on_stdout=lambda message: heard.append(message.line),
            on_stderr=lambda message: heard.append(message.line),
            on_result=lambda result: heard.append(result.json),
        )
    )
    assert heard[0] == {"k": 1} and sorted(heard[1:3]) == ["err\n", "out\n"], heard
    assert heard[3] == {"main": [1, 2]} and [each.is_main_result for each in execution.results] == [False, True], heard
    print("streams")

    execution = await of(sandbox.run_code("1 / 0"))
    assert execution.error.name == "ZeroDivisionError" and "line 1" in execution.error.traceback, execution.error
    print("error")

    execution = await of(sandbox.run_code("let y = 2; y * 4", language="javascript"))
    assert execution.text == "8", execution
    execution = await of(sandbox.run_code("echo $OWN", language="bash", envs={"OWN": "it's"}))
    assert execution.logs.stdout == ["it's\n"], execution
    print("languages")

    error = await failure(lambda: sandbox.run_code("while True: pass", timeout=1))
    assert isinstance(error, e2b.TimeoutException), repr(error)
    assert (await of(sandbox.run_code("x"))).text == "20"
    print("timeout")

    context = await of(sandbox.create_code_context(language="python", cwd="/tmp"))
    execution = await of(sandbox.run_code("import os\nos.getcwd(), 'x' in globals()", context=context))
    assert execution.text == "('/tmp', False)", execution
    assert context.id in [each.id for each in await of(sandbox.list_code_contexts())]
    await of(sandbox.restart_code_context(context))
    await of(sandbox.remove_code_context(context))
    assert isinstance(await failure(lambda: sandbox.run_code("1", context=context)), e2b.NotFoundException)
    print("contexts")

    await of(sandbox.kill())
    assert isinstance(await failure(lambda: sandbox.run_code("1")), Exception)
    print("gone")


asyncio.run(main())
