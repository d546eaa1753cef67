import { openPlace } from "./place.ts";
import { SCENARIOS } from "./scenarios.ts";
import { MORE_SCENARIOS } from "./shell-scenarios.ts";
import { SPARE_SCENARIOS } from "./spare-scenarios.ts";

// Tries all scenarios as whoever runs this process; one line of JSON each.

await using place = await openPlace();
for (const [title, scenario] of Object.entries({ ...SCENARIOS, ...MORE_SCENARIOS, ...SPARE_SCENARIOS })) {
  const outcome = await Promise.race([scenario.run(place), tooLate()]).then(
    (value) => ({ title, value }),
    (error: Error & { cause?: unknown }) => ({ title, error: `${error.stack}\n${String(error.cause ?? "")}` }),
  );
  console.log(JSON.stringify(outcome));
}
console.log(JSON.stringify({ title: "log", value: place.log }));

async function tooLate(): Promise<never> {
  await new Promise((resolve) => setTimeout(resolve, 60_000).unref());
  throw new Error("it took longer than a minute");
}
