import { HybridEngine } from '@bufferwise/hybrid-engine';
import { defineCommand } from '../command/command.ts';
import { isSameText, reportTable } from '../demo/report-table.ts';
import { type DemoObserver, type DemoResult, runRequests } from '../demo/run-requests.ts';
import { ENDING_A, ENDING_B, SECOND_TURN, SHARED_PROMPT } from '../demo/story.ts';
import { openDevice } from '../gpu/open-device.ts';
import { wholeNumber } from '../input/arguments.ts';
import { DEMO_MODEL_FOLDER, readModelFolder } from '../input/model-folder.ts';
import type { Colors, Terminal } from '../terminal/terminal.ts';
import { memoryBytes } from './generate.ts';

const texts = { shared: SHARED_PROMPT, endingA: ENDING_A, endingB: ENDING_B, secondTurn: SECOND_TURN };

/** Shows reuse group by group on the demo model, and proves that it changes no word. Exit code 1 when it does. */
export const demo = defineCommand({
  name: 'demo',
  summary: 'Three requests on a hybrid model, with reuse and without, and what it saved',
  args: {
    model: { type: 'string', description: 'Folder of a model like the demo model, which is the default', valueHint: 'DIR' },
    'max-new-tokens': { type: 'string', description: 'Tokens to generate for each request', valueHint: 'N', default: '40' },
    memory: { type: 'string', description: 'Memory for all pages', valueHint: 'SIZE', default: '64MiB' },
    'memory-mib': { type: 'string', description: 'The same in MiB; goes before --memory', valueHint: 'N' },
    json: { type: 'boolean', description: 'Print one JSON object instead of the story', default: false },
  },
  examples: [
    { what: 'The whole story', line: 'bufferwise demo' },
    { what: 'Shorter answers, for a check', line: 'bufferwise demo --max-new-tokens 8 --json' },
  ],
  async run(given, terminal) {
    const maxNewTokens = wholeNumber('max-new-tokens', given['max-new-tokens'], { min: 1, max: 100_000 });
    const deviceBytes = memoryBytes(given.memory, given['memory-mib']);
    const model = await readModelFolder(given.model ?? DEMO_MODEL_FOLDER);
    const { device, name } = await openDevice();
    const { bold, dim } = terminal.colors;
    const say = (text: string) => (given.json ? undefined : terminal.print(text));
    const observer = given.json ? SILENT : storyTeller(terminal);
    const { signal } = terminal;
    try {
      const engine = await HybridEngine.create({ model, device, cache: { deviceBytes } });
      const { layerPattern } = model.config;
      say(
        `${bold(model.config.name)}: ${layerPattern.length} layers ${layerPattern} (M = Mamba-2, S = sliding window, F = full attention) on ${name}\n`,
      );
      say(`${dim(`${SHARED_PROMPT.slice(0, 160)} …`)}\n`);
      const sharedTokens = model.tokenizer.encode(SHARED_PROMPT).length;
      say(`All requests begin with these ${SHARED_PROMPT.length} characters of Moby-Dick, ${sharedTokens} tokens.\n\n`);

      say(`${bold('With reuse')}\n`);
      const withReuse = await runRequests(engine, texts, { reuse: true, maxNewTokens, observer, signal });
      engine.manager.clearReusableBlocks();
      say(`\n${bold('The same without reuse')}\n`);
      const withoutReuse = await runRequests(engine, texts, { reuse: false, maxNewTokens, observer, signal });

      say(`\n${reportTable(engine.manager, withReuse, withoutReuse, terminal.colors)}\n\n`);
      const verdict = judge(withReuse, withoutReuse, sharedTokens, terminal.colors);
      say(`${verdict.text}\n`);
      if (given.json) {
        terminal.print(`${JSON.stringify({ passed: verdict.passed, device: name, sharedTokens, withReuse, withoutReuse })}\n`);
      }
      await engine.close();
      return verdict.passed ? 0 : 1;
    } finally {
      device.destroy();
    }
  },
});

const SILENT: DemoObserver = { begins: () => {}, says: () => {}, ends: () => {} };

function storyTeller({ print, colors }: Terminal): DemoObserver {
  return {
    begins: (name, ending) => print(`${colors.cyan(name)} ${colors.dim(`…${ending}`)}`),
    says: (text) => print(text.replace(/\n/g, ' ')),
    ends: () => print('\n'),
  };
}

/** What the counted work says. */
function judge(
  withReuse: readonly DemoResult[],
  withoutReuse: readonly DemoResult[],
  sharedTokens: number,
  colors: Colors,
): { passed: boolean; text: string } {
  const lines: string[] = [];
  const { computedTokens, promptTokens } = withReuse[1].report;
  const rest = promptTokens - sharedTokens;
  const onlyTheRest = computedTokens === rest;
  lines.push(
    onlyTheRest
      ? colors.green(
          `Request B put ${computedTokens} of its ${promptTokens} prompt tokens through the model: exactly those after the shared beginning.`,
        )
      : colors.red(`Request B put ${computedTokens} tokens through the model, but only ${rest} come after the shared beginning.`),
  );
  const differing = withReuse.filter((result, i) => !isSameText(result, withoutReuse[i]));
  const sum = (results: readonly DemoResult[]) => results.reduce((total, { report }) => total + report.computedTokens, 0);
  lines.push(`Prompt tokens computed in all: ${sum(withReuse)} with reuse, ${sum(withoutReuse)} without.`);
  lines.push(
    differing.length === 0
      ? colors.green('Every answer is the same, token by token, with reuse and without.')
      : colors.red(`Answers that differ with reuse: ${differing.map(({ name }) => name).join(', ')}.`),
  );
  return { passed: onlyTheRest && differing.length === 0, text: lines.join('\n') };
}
