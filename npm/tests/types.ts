// Compiled, not run: each mistake must be one.
import { type CheckReport, RehearseError, check, fuzz, run, startMock, startModel } from "mcp-rehearsal";

export async function right(): Promise<string> {
  await using mock = await startMock({ tools: [] }, { args: ["--seed", "1"] });
  await using model = await startModel("model.yaml");
  const report: CheckReport = await check(mock.stdioCommand, { only: "tools", allowTools: ["a"], strict: true });
  await fuzz(mock.url, { token: "t", headers: { "X-A": "b" }, startTimeout: "5s" });
  const [entry] = await mock.journal();
  const numbers: number[] = [report.totals.failed, entry!.number];
  return [await run(), model.openaiUrl, mock.url, new RehearseError("why").message, ...numbers].join();
}

export async function wrong(): Promise<void> {
  // @ts-expect-error
  await startMock(7);
  // @ts-expect-error
  await check("server", { onyl: "tools" });
  // @ts-expect-error
  await fuzz("server", { toolArgs: ["a"] });
  // @ts-expect-error
  (await startModel("model.yaml")).journal();
}
