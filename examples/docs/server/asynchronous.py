# #region many
import asyncio

from agentfense import AsyncSandbox, AsyncSandboxClient


async def main():
    async with AsyncSandboxClient() as client:
        codebase = await client.create_codebase("parcels", "team-7")
        await client.upload_directory(codebase.id, "./project")

        async def attempt(number):
            async with AsyncSandbox.from_codebase(codebase.id, "development", client=client, sync="never") as sandbox:
                await sandbox.run(f"echo {number} > answer.txt", check=True)
                async for event in sandbox.exec_stream("cat answer.txt"):
                    if event.kind == "stdout":
                        return int(event.text)

        print(await asyncio.gather(*(attempt(number) for number in range(5))))
        await client.delete_codebase(codebase.id)


asyncio.run(main())
# #endregion


# #region cancel
async def impatient():
    async with AsyncSandbox.create(preset="full-access") as sandbox:
        try:
            await asyncio.wait_for(sandbox.run("sleep 60; touch late"), timeout=0.5)
        except asyncio.TimeoutError:
            print("the command is dead:", await sandbox.list_files())


asyncio.run(impatient())
# #endregion
