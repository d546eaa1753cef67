"""What a program does with E2B, in both faces of its client; prints what went well."""

import asyncio
import inspect
import sys
import urllib.request

import e2b

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


async def until(holds):
    for _ in range(600):
        if await of(holds()):
            return
        await asyncio.sleep(0.1)
    raise AssertionError("it never came to be")


async def main():
    sandbox = await of(Sandbox.create(metadata={"python": "a b"}, envs={"A": "1"}))
    print("create")

    result = await of(sandbox.commands.run("echo $A; pwd; echo err >&2"))
    assert (result.stdout, result.stderr, result.exit_code) == ("1\n/home/user\n", "err\n", 0), result
    print("run")

    error = await failure(lambda: sandbox.commands.run("echo out; exit 3"))
    assert isinstance(error, e2b.CommandExitException) and (error.exit_code, error.stdout) == (3, "out\n"), error
    print("exit")

    handle = await of(sandbox.commands.run("read line; echo got $line", background=True, stdin=True))
    assert [each.pid for each in await of(sandbox.commands.list())] == [handle.pid]
    await of(sandbox.commands.send_stdin(handle.pid, "it\n"))
    assert (await of(handle.wait())).stdout == "got it\n"
    print("background")

    handle = await of(sandbox.commands.run("sleep 1000", background=True))
    assert await of(sandbox.commands.kill(handle.pid)) is True
    assert isinstance(await failure(handle.wait), e2b.CommandExitException)
    assert await of(sandbox.commands.kill(handle.pid)) is False
    print("kill")

    error = await failure(lambda: sandbox.commands.run("sleep 1000", timeout=1))
    # The client's own clock may be the first to say so, in the words of its HTTP library.
    assert isinstance(error, e2b.TimeoutException) or type(error).__name__ == "ReadTimeout", repr(error)
    print("timeout")

    seen = []
    await of(sandbox.commands.run("echo one; echo two", on_stdout=seen.append, envs={"A": "2"}, cwd="/tmp"))
    assert "".join(map(str, seen)) == "one\ntwo\n", seen
    assert (await of(sandbox.commands.run("echo $A $PWD $USER", envs={"A": "2"}, cwd="/tmp", user="root"))).stdout == (
        "2 /tmp root\n"
    )
    print("output")

    await of(sandbox.files.write("dir/a b.txt", "text"))
    await of(sandbox.files.write_files([{"path": "dir/b", "data": b"\x00\xff"}, {"path": "/tmp/c", "data": "c"}]))
    assert sorted(each.name for each in await of(sandbox.files.list("dir"))) == ["a b.txt", "b"]
    assert await of(sandbox.files.make_dir("dir/new")) is True
    assert await of(sandbox.files.make_dir("dir/new")) is False
    assert (await of(sandbox.files.rename("dir/b", "moved/b"))).path == "/home/user/moved/b"
    assert await of(sandbox.files.exists("dir/b")) is False
    assert (await of(sandbox.files.get_info("moved/b"))).size == 2
    await of(sandbox.files.remove("moved"))
    print("files")

    assert await of(sandbox.files.read("dir/a b.txt")) == "text"
    assert bytes(await of(sandbox.files.read("dir/a b.txt", format="bytes"))) == b"text"
    stream = await of(sandbox.files.read("dir/a b.txt", format="stream"))
    pieces = [piece async for piece in stream] if ASYNC else list(stream)
    assert b"".join(pieces) == b"text"
    print("formats")

    assert isinstance(await failure(lambda: sandbox.files.read("nowhere")), e2b.FileNotFoundException)
    assert isinstance(await failure(lambda: sandbox.files.list("nowhere")), e2b.FileNotFoundException)
    print("lost")

    assert isinstance(await failure(lambda: sandbox.files.list("dir/a b.txt")), e2b.InvalidArgumentException)
    assert isinstance(await failure(lambda: sandbox.files.read("dir")), e2b.InvalidArgumentException)
    assert isinstance(await failure(lambda: sandbox.files.read("dir", user="eve")), e2b.AuthenticationException)
    assert isinstance(await failure(lambda: sandbox.commands.run("true", cwd="/nowhere")), e2b.InvalidArgumentException)
    print("refused")

    seen = []
    if ASYNC:
        watch = await sandbox.files.watch_dir("dir", on_event=lambda event: seen.append(event.name))
    else:
        watch = sandbox.files.watch_dir("dir")
    await of(sandbox.files.write("dir/watched", "x"))

    def news():
        if not ASYNC:
            seen.extend(event.name for event in watch.get_new_events())
        return "watched" in seen

    await until(news)
    await of(watch.stop())
    print("watch")

    shown = []
    size = e2b.PtySize(rows=20, cols=90)
    if ASYNC:
        terminal = await sandbox.pty.create(size, on_data=lambda data: shown.append(bytes(data)))
    else:
        terminal = sandbox.pty.create(size)
    await of(sandbox.pty.resize(terminal.pid, e2b.PtySize(rows=33, cols=101)))
    await of(sandbox.pty.send_stdin(terminal.pid, b"stty size; exit\n"))
    if ASYNC:
        await terminal.wait()
    else:
        terminal.wait(on_pty=lambda data: shown.append(bytes(data)))
    assert b"33 101" in b"".join(shown), shown
    print("terminal")

    info = await of(sandbox.get_info())
    assert (info.sandbox_id, info.template_id, info.metadata) == (sandbox.sandbox_id, "base", {"python": "a b"}), info
    assert await of(sandbox.is_running()) is True
    await of(sandbox.set_timeout(600))
    print("info")

    pages = Sandbox.list(query=e2b.SandboxQuery(metadata={"python": "a b"}))
    assert sandbox.sandbox_id in [each.sandbox_id for each in await of(pages.next_items())]
    print("list")

    url = await of(sandbox.download_url("dir/a b.txt"))
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    assert (await asyncio.to_thread(direct.open, url)).read() == b"text"
    print("url")

    await of(sandbox.pause())
    assert await of(sandbox.is_running()) is False
    again = await of(Sandbox.connect(sandbox.sandbox_id))
    assert await of(again.files.read("dir/a b.txt")) == "text"
    print("pause")

    assert await of(sandbox.kill()) is True
    assert await of(sandbox.kill()) is False
    error = await failure(lambda: sandbox.commands.run("true"))
    assert isinstance(error, e2b.SandboxException), repr(error)
    print("gone")

    error = await failure(lambda: Sandbox.create(api_key="e2b_" + "0" * 40))
    assert isinstance(error, e2b.AuthenticationException), repr(error)
    error = await failure(lambda: Sandbox.create("no-such-template"))
    assert isinstance(error, e2b.SandboxException) and "no-such-template" in str(error), repr(error)
    print("key")


asyncio.run(main())
