from agentfense import FileNotFoundError, PermissionDeniedError, Sandbox, SandboxError, SandboxNotRunningError

with Sandbox.from_local("./project") as sandbox:
    # #region short
    sandbox.run("mkdir -p output")
    sandbox.write_file("/output/notes.md", "# Notes\n")
    print(sandbox.read_file("output/notes.md"))  # "/x", "x" and "/workspace/x" are the same
    print(sandbox.list_files("src"))
    # #endregion

    # #region files
    files = sandbox.files
    files.append_file("/output/notes.md", "- one\n")
    print(files.read_file("/output/notes.md", "utf-8"))  # bytes without an encoding
    print(files.readdir("/"))
    for entry in files.readdir("/src", with_file_types=True):
        print(entry.name, entry.is_file)
    stat = files.stat("/output/notes.md")
    print(stat.size, stat.permission, stat.is_dir)
    files.mkdir("/output/old/drafts", recursive=True)
    files.rename("/output/notes.md", "/output/old/notes.md")
    files.rm("/output/old", recursive=True)
    # #endregion

    # #region rules
    try:
        files.read_file("/.env")
    except FileNotFoundError:
        print("hidden is nonexistent")
    try:
        files.write_file("/src/tracker.js", "")
    except PermissionDeniedError:
        print("agent-safe lets it be read")
    # #endregion

    # #region watch
    with files.watch("/output") as watch:  # on from here
        sandbox.run("touch output/part-1")
        change = next(watch)
        print(change.event_type, change.filename)  # "rename": a name came or went; else "change"
    # #endregion

    # #region errors
    sandbox.stop()
    try:
        sandbox.run("true")
    except SandboxError as error:
        print(isinstance(error, SandboxNotRunningError), error.code, error.retryable, error.hint is not None)
    sandbox.start()
    # #endregion
