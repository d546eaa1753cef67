# #region options
from agentfense import ResourceLimits, Sandbox


def progress(upload):
    if upload.phase == "uploading" and upload.done_bytes == upload.total_bytes:
        print("uploaded", upload.files)


sandbox = Sandbox.from_local(
    "./project",
    preset="read-only",
    runtime="bwrap",  # or "docker", with `image`
    network="none",  # or a NetworkList, "private", "host"
    resources=ResourceLimits(memory_bytes=512 * 1024**2, pids_limit=100, disk_bytes=100 * 1024**2),
    env={"CI": "1"},
    labels={"team": "parcels"},
    on_progress=progress,
)
print(sandbox.run("echo $CI").stdout, sandbox.status, sandbox.info.labels)
# #endregion

# #region connect
with Sandbox.connect(sandbox.id) as again:
    print(again.run("head -n 1 README.md").stdout)  # the same sandbox; the end of the block leaves it alone
# #endregion

# #region get_or_create
shared = Sandbox.get_or_create("nightly", path="./project")  # makes it, or finds it and starts it
print(shared.id == Sandbox.get_or_create("nightly", path="./project").id)
shared.destroy()
# #endregion

# #region list
for info in Sandbox.list(sandbox.codebase_id):
    print(info.status, info.labels)
# #endregion

sandbox.destroy()
sandbox.close()
