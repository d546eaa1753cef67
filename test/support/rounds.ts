/**
 * How often a repeated test repeats. Quick by default; the environment asks for more:
 * AGENTFENSE_SOAK=1 multiplies by fifty, AGENTFENSE_ROUNDS=N multiplies by N.
 */
export function rounds(usual: number): number {
  return Math.max(1, Math.round(usual * multiplier(process.env)));
}

function multiplier(environment: NodeJS.ProcessEnv): number {
  const asked = Number(environment.AGENTFENSE_ROUNDS);
  if (Number.isFinite(asked) && asked > 0) return asked;
  return environment.AGENTFENSE_SOAK === undefined || environment.AGENTFENSE_SOAK === "0" ? 1 : 50;
}
