# #region codebase
from agentfense import Sandbox, SandboxClient

client = SandboxClient()
codebase = client.create_codebase("parcels", "team-7")
upload = client.upload_directory(codebase.id, "./project")
print(upload.files_sent, upload.left_out)
print(client.upload_directory(codebase.id, "./project").files_sent)  # 0: the server has the content already
# #endregion

# #region agents
# Two agents at work on one codebase, each with its own rules; what one syncs, the other sees.
with Sandbox.from_codebase(codebase.id, "development", client=client, sync="on-exec") as writer:
    with Sandbox.from_codebase(codebase.id, "read-only", client=client) as reader:
        result = writer.run("echo '# Parcels' > README.md")
        print(reader.run("cat README.md").stdout)
# #endregion

# #region versions
for version in client.list_versions(codebase.id):
    print(version.version, version.origin)
client.rollback(codebase.id, result.synced_version - 1)
print(client.download_file(codebase.id, "README.md").decode().splitlines()[0])
# #endregion

client.delete_codebase(codebase.id)
client.close()
