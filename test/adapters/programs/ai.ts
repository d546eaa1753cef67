import { Sandbox } from "agentfense";
import { aiTools } from "agentfense/ai";
import { generateText, type LanguageModel, stepCountIs } from "ai";

export async function improve(directory: string, model: LanguageModel): Promise<string> {
  await using sandbox = await Sandbox.fromLocal(directory, { preset: "development" });
  const { text } = await generateText({
    model,
    tools: aiTools(sandbox),
    stopWhen: stepCountIs(20),
    prompt: "Let src/greet.sh greet the moon.",
  });
  await sandbox.apply();
  return text;
}
