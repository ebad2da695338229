import { CommandError } from './process.mjs';

export const BENCH_USAGE = `bench [name …] [--json] [--out FILE] [--compare FILE] [--tolerance PART]

  name         benches whose path contains one of the names; all of them without one
  --json       prints the report as one JSON object, and nothing else on the standard output
  --out        writes the report into a file
  --compare    shows each figure beside that of a saved report; code 1 when one is worse by more than the tolerance
  --tolerance  part by which a figure may be worse: 0.25 where nothing is said
`;

const WITH_VALUE = ['--out', '--compare', '--tolerance'];

/**
 * @param {readonly string[]} args
 * @throws {CommandError} code 2, on flags that say nothing
 */
export function benchFlags(args) {
  const flags = { names: [], json: false, out: undefined, compare: undefined, tolerance: 0.25 };
  for (let i = 0; i < args.length; i++) {
    const [word, inline] = args[i].startsWith('--') ? splitOnce(args[i]) : [args[i]];
    if (word === '--json' && inline === undefined) {
      flags.json = true;
    } else if (WITH_VALUE.includes(word)) {
      const value = inline ?? args[++i];
      if (value === undefined || value === '') throw new CommandError(`${word} takes a value.\n${BENCH_USAGE}`, 2);
      flags[word.slice(2)] = word === '--tolerance' ? toleranceOf(value) : value;
    } else if (word.startsWith('-')) {
      throw new CommandError(`bench does not know ${word}.\n${BENCH_USAGE}`, 2);
    } else {
      flags.names.push(word);
    }
  }
  return flags;
}

function splitOnce(word) {
  const at = word.indexOf('=');
  return at === -1 ? [word] : [word.slice(0, at), word.slice(at + 1)];
}

function toleranceOf(text) {
  const value = Number(text);
  if (text.trim() !== '' && value >= 0 && value <= 100) return value;
  throw new CommandError(`--tolerance is ${JSON.stringify(text)}; it is a part from 0 to 100, as 0.25`, 2);
}
