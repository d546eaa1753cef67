import { openBoxFixture } from "./fixture.ts";
import { LIVING_SCENARIOS, LONE_SCENARIOS } from "./living-scenarios.ts";
import { SCENARIOS } from "./scenarios.ts";
import { MORE_SCENARIOS } from "./shell-scenarios.ts";

// Tries all scenarios as whoever runs this process; one line of JSON each.

for (const [title, { run }] of Object.entries(LONE_SCENARIOS)) await report(title, run());
await using place = await openBoxFixture();
for (const [title, { run }] of Object.entries({ ...SCENARIOS, ...MORE_SCENARIOS, ...LIVING_SCENARIOS })) {
  await report(title, run(place));
}
console.log(JSON.stringify({ title: "log", value: place.log }));

async function report(title: string, running: Promise<unknown>): Promise<void> {
  const outcome = await Promise.race([running, tooLate()]).then(
    (value) => ({ title, value }),
    (error: Error & { cause?: unknown }) => ({ title, error: `${error.stack}\n${String(error.cause ?? "")}` }),
  );
  console.log(JSON.stringify(outcome));
}

async function tooLate(): Promise<never> {
  await new Promise((resolve) => setTimeout(resolve, 60_000).unref());
  throw new Error("it took longer than a minute");
}
