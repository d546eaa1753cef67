import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { agentfense, scratch } from "./run-cli.ts";

const VALUE = "ghp_0123456789abcdefghijABCDEFGHIJ012345";

test("in the sandbox a secret's variable holds a placeholder, whatever the value comes from, and nothing has the value", async () => {
  const cwd = await scratch();
  await writeFile(join(cwd, "value"), `${VALUE}\n`);
  const at = (name: string, source: string) => [
    "--secret",
    `${name}@api.test=header x-${name}`,
    "--secret-from",
    `${name}=${source}`,
  ];
  const { stdout, stderr, code } = await agentfense(
    [
      ...["run", "--secret", "TOKEN@api.test", ...at("A", "env:TOKEN"), ...at("B", `file:${join(cwd, "value")}`)],
      ...[
        ...at("C", "command:printf %s $TOKEN"),
        cwd,
        "--",
        "sh",
        "-c",
        "echo $TOKEN; echo $A; echo $B; echo $C; cat /proc/[0-9]*/environ 2>/dev/null; true",
      ],
    ],
    { cwd: "/", env: { TOKEN: VALUE } },
  );
  const placeholders = stdout.split("\n").slice(0, 4);
  expect({ code, stderr: stderr.includes(VALUE) }).toEqual({ code: 0, stderr: false });
  for (const placeholder of placeholders) expect(placeholder).toMatch(/^ghp_[A-Za-z0-9]{36}$/);
  expect(new Set(placeholders).size).toBe(4);
  expect(stdout).toContain(`TOKEN=${placeholders[0]}`);
  expect(stdout).toContain("SSL_CERT_FILE=/run/agentfense/ca-bundle.pem");
  expect(stdout).not.toContain(VALUE);
});
