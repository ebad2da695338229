import { HybridEngine } from '@bufferwise/hybrid-engine';
import { defineCommand } from 'citty';
import pc from 'picocolors';
import { isSameText, reportTable } from '../demo/report-table.ts';
import { type DemoObserver, type DemoResult, runRequests } from '../demo/run-requests.ts';
import { ENDING_A, ENDING_B, SECOND_TURN, SHARED_PROMPT } from '../demo/story.ts';
import { openDevice } from '../gpu/open-device.ts';
import { refuseUnknown, wholeNumber } from '../input/arguments.ts';
import { DEMO_MODEL_FOLDER, readModelFolder } from '../input/model-folder.ts';

const args = {
  model: { type: 'string', description: 'Folder of the model', valueHint: 'DIR', default: DEMO_MODEL_FOLDER },
  'max-new-tokens': { type: 'string', description: 'Tokens to generate for each request', valueHint: 'N', default: '40' },
  'memory-mib': { type: 'string', description: 'Memory for all pages, in MiB', valueHint: 'N', default: '64' },
} as const;

const texts = { shared: SHARED_PROMPT, endingA: ENDING_A, endingB: ENDING_B, secondTurn: SECOND_TURN };

/** Shows reuse group by group on the demo model, and proves that it changes no word. Exit code 1 when it does. */
export const demo = defineCommand({
  meta: { name: 'demo', description: 'Three requests on a hybrid model, with reuse and without, and what it saved' },
  args,
  async run({ args: given }) {
    refuseUnknown('demo', given, args);
    const maxNewTokens = wholeNumber('max-new-tokens', given['max-new-tokens'], { min: 1, max: 100_000 });
    const deviceBytes = wholeNumber('memory-mib', given['memory-mib'], { min: 1, max: 1_048_576 }) * 2 ** 20;
    const model = await readModelFolder(given.model);
    const { device, name } = await openDevice();
    try {
      const engine = await HybridEngine.create({ model, device, cache: { deviceBytes } });
      const { layerPattern } = model.config;
      print(
        `${pc.bold(model.config.name)}: ${layerPattern.length} layers ${layerPattern} (M = Mamba-2, S = sliding window, F = full attention) on ${name}\n`,
      );
      print(`${pc.dim(`${SHARED_PROMPT.slice(0, 160)} …`)}\n`);
      const sharedTokens = model.tokenizer.encode(SHARED_PROMPT).length;
      print(`All requests begin with these ${SHARED_PROMPT.length} characters of Moby-Dick, ${sharedTokens} tokens.\n\n`);

      print(`${pc.bold('With reuse')}\n`);
      const withReuse = await runRequests(engine, texts, { reuse: true, maxNewTokens, observer: terminal });
      engine.manager.clearReusableBlocks();
      print(`\n${pc.bold('The same without reuse')}\n`);
      const withoutReuse = await runRequests(engine, texts, { reuse: false, maxNewTokens, observer: terminal });

      print(`\n${reportTable(engine.manager, withReuse, withoutReuse)}\n\n`);
      const verdict = judge(withReuse, withoutReuse, sharedTokens);
      print(`${verdict.text}\n`);
      await engine.close();
      return verdict.passed ? 0 : 1;
    } finally {
      device.destroy();
    }
  },
});

const print = (text: string): void => void process.stdout.write(text);

const terminal: DemoObserver = {
  begins: (name, ending) => print(`${pc.cyan(name)} ${pc.dim(`…${ending}`)}`),
  says: (text) => print(text.replace(/\n/g, ' ')),
  ends: () => print('\n'),
};

/** What the counted work says. */
function judge(
  withReuse: readonly DemoResult[],
  withoutReuse: readonly DemoResult[],
  sharedTokens: number,
): { passed: boolean; text: string } {
  const lines: string[] = [];
  const { computedTokens, promptTokens } = withReuse[1].report;
  const rest = promptTokens - sharedTokens;
  const onlyTheRest = computedTokens === rest;
  lines.push(
    onlyTheRest
      ? pc.green(
          `Request B put ${computedTokens} of its ${promptTokens} prompt tokens through the model: exactly those after the shared beginning.`,
        )
      : pc.red(`Request B put ${computedTokens} tokens through the model, but only ${rest} come after the shared beginning.`),
  );
  const differing = withReuse.filter((result, i) => !isSameText(result, withoutReuse[i]));
  const sum = (results: readonly DemoResult[]) => results.reduce((total, { report }) => total + report.computedTokens, 0);
  lines.push(`Prompt tokens computed in all: ${sum(withReuse)} with reuse, ${sum(withoutReuse)} without.`);
  lines.push(
    differing.length === 0
      ? pc.green('Every answer is the same, token by token, with reuse and without.')
      : pc.red(`Answers that differ with reuse: ${differing.map(({ name }) => name).join(', ')}.`),
  );
  return { passed: onlyTheRest && differing.length === 0, text: lines.join('\n') };
}
