from agentfense import CommandExecutionError, Sandbox

with Sandbox.from_local("./project") as sandbox:
    # #region result
    result = sandbox.run("ls src; ls nothing")
    print(result.exit_code, result.success)  # 2 False: an exit code is a result, not an exception
    print(result.stdout, result.stderr, result.duration.total_seconds() > 0)
    print(result.signal, result.timed_out, result.truncated, result.out_of_memory)
    # #endregion

    # #region check
    try:
        sandbox.run("exit 3", check=True)
    except CommandExecutionError as error:
        print(error.code, error.exit_code)  # COMMAND_FAILED 3
    # #endregion

    # #region options
    greeting = sandbox.run(
        'echo "$GREETING from $PWD"; cat',
        timeout=10,  # 60 unless given
        env={"GREETING": "hello"},
        workdir="src",  # relative to /workspace, or absolute
        stdin="what cat reads\n",
    )
    print(greeting.stdout)
    # #endregion

    # #region words
    found = sandbox.run(["grep", "-rl", "carrier; rm -rf *", "."])  # no shell looks at it
    print(found.exit_code)
    # #endregion

    # #region timeout
    slow = sandbox.run("echo begun; sleep 60", timeout=2)
    print(slow.timed_out, slow.stdout)  # True, and what it printed until then
    # #endregion

    # #region callbacks
    sandbox.run("echo one; echo two; echo three >&2", on_stdout=lambda text: print(text, end=""))
    # #endregion

    # #region events
    for event in sandbox.exec_stream("for n in 1 2 3; do echo $n; done; exit 4"):
        if event.kind == "exit":
            print("exit", event.exit_code)
        else:
            print(event.text, end="")  # event.kind is "stdout" or "stderr", event.data the bytes
    # #endregion

    # #region stdin
    sorting = sandbox.exec_stream("sort")
    sorting.send_stdin("pear\n")
    sorting.send_stdin("apple\n")
    sorting.end_stdin()
    print(sorting.wait().stdout)
    # #endregion

    # #region kill
    with sandbox.exec_stream("sleep 600 & echo begun; sleep 600") as sleeping:
        print(next(sleeping).kind)
        sleeping.kill()  # all of it; so does the end of the block
    print(sleeping.wait().signal)
    # #endregion

    # #region session
    with sandbox.session(env={"STAGE": "test"}) as session:
        session.exec("cd src; greet() { echo hello $1; }")
        print(session.exec("pwd; greet $STAGE").stdout)  # /workspace/src, hello test

        stuck = session.exec("sleep 60", timeout=0.5)
        print(stuck.timed_out)  # the command is interrupted; the session goes on
        print(session.exec("pwd").stdout)
    # #endregion

    # #region pause
    sandbox.run("echo kept > /tmp/kept")
    sandbox.pause()
    print(sandbox.status, len(sandbox.files.readdir("/src")) > 0)
    print(sandbox.resume().run("cat /tmp/kept").stdout)
    # #endregion

    # #region process
    server = sandbox.spawn("echo listening; read line; echo got $line", tag="server", stdin=True)
    # Later, or in another program: by its number or its tag.
    found = sandbox.process("server")
    output = found.attach()  # its last output, then what comes
    found.write("hello\n")
    for event in output:
        print(event.data.decode() if event.end is None else f"exit code {event.end.exit_code}\n", end="")
    print([f"{each.info.tag}: {each.info.state}" for each in sandbox.processes()])
    server.wait()
    # #endregion

    # #region code
    first = sandbox.run_code("import os\nsources = os.listdir('src')\nprint('looked')\nlen(sources) > 0")
    print(first.stdout, first.text)  # looked, True
    second = sandbox.run_code("sources.missing")  # the names of the first are still there
    print(second.error.name, second.execution_count)

    with sandbox.create_code_context("javascript") as context:
        context.run("let sum = 0")
        late = context.run("while (true) sum += 1", timeout=0.2)
        print(late.timed_out, context.run("sum > 0").text)  # interrupted; its names stay
    # #endregion

    # #region terminal
    with sandbox.terminal(columns=80, rows=24) as terminal:
        terminal.write("stty size; exit 7\n")
        screen = b"".join(terminal)
        print(b"24 80" in screen, terminal.exit_code)
    # #endregion

    # #region branches
    base = sandbox.snapshot("base")
    first, second = sandbox.fork(count=2, env={"STAGE": "try"})
    with first, second:
        first.run("mkdir -p output; echo $STAGE one > output/plan.md")
        print(first.read_file("output/plan.md").strip(), second.run("ls output/plan.md").success)
    sandbox.restore(base.id)
    print([snapshot.label for snapshot in sandbox.snapshots()])
    # #endregion
