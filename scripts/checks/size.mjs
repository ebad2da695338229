import { runTool } from '../run/process.mjs';

/** @type {import('./all.mjs').Check} */
export const size = {
  name: 'size',
  about: 'what one package alone adds to a web page (size-limit)',
  packs: true,
  async run() {
    const { code, output } = await runTool('size-limit', ['--json'], { capture: true });
    const results = parse(output);
    if (results === undefined) return { problems: output, remedy: 'mend .size-limit.mjs.' };
    const lines = results.map(
      ({ name, passed, size }) => `${passed ? '      ' : 'above '} ${name}: ${(size / 1000).toFixed(2)} kB`,
    );
    return {
      problems: code === 0 ? '' : lines.join('\n'),
      note: results.map(({ name, size }) => `${name.replace('@bufferwise/', '')} ${(size / 1000).toFixed(1)} kB`).join(', '),
      remedy: 'make the package smaller, or argue for the bytes and raise its budget in .size-limit.mjs.',
    };
  },
};

function parse(output) {
  try {
    return JSON.parse(output.slice(output.indexOf('[')));
  } catch {
    return undefined;
  }
}
