import { availableParallelism } from 'node:os';
import { apiDocs } from '../checks/api-docs.mjs';
import { changeset } from '../checks/changeset.mjs';
import { contents } from '../checks/contents.mjs';
import { errorCodes } from '../checks/error-codes.mjs';
import { exportsOfPackages } from '../checks/exports.mjs';
import { imports } from '../checks/imports.mjs';
import { packPackages } from '../checks/pack.mjs';
import { size } from '../checks/size.mjs';
import { style } from '../checks/style.mjs';
import { types } from '../checks/types.mjs';
import { unused } from '../checks/unused.mjs';
import { words } from '../checks/words.mjs';
import { buildPackages } from './build.mjs';
import { dependencies } from './dependencies.mjs';
import { CommandError } from './process.mjs';
import { duration, failure, faint, indented, progress, say, strong, success } from './terminal.mjs';

/**
 * A check looks at one thing. `run` returns what it found: `problems` is what the person must see (empty when all is well),
 * `remedy` is what they do about it, `note` says what was looked at.
 *
 * @typedef {{ name: string, about: string, packs?: boolean, run(context: { packs: import('../checks/pack.mjs').Pack[] }):
 *   Promise<{ problems: string, remedy: string, note?: string }> }} Check
 */

/** The long ones first, so that they overlap. `packs` marks those that look at packed packages. */
const checks = [types, apiDocs, exportsOfPackages, contents, size, unused, imports, style, errorCodes, changeset, words];

/** `check [name …]`: one line for each check; 0 when all are well. */
export async function check(names) {
  const unknown = names.filter((name) => !checks.some((each) => each.name === name));
  if (unknown.length > 0) {
    throw new CommandError(
      `There is no check "${unknown[0]}". The checks are:\n${checks.map((each) => `  ${each.name.padEnd(10)} ${each.about}`).join('\n')}`,
    );
  }
  const chosen = names.length === 0 ? checks : checks.filter((each) => names.includes(each.name));
  const needPacks = chosen.some((each) => each.packs);

  const { step } = progress(needPacks ? 3 : 1);
  await step('dependencies', dependencies);
  let packs = [];
  if (needPacks) {
    await step('build', () => buildPackages(['./packages/*']));
    packs = await step('packing', packPackages);
  }

  say(`\n${strong('Checks')}`);
  const waiting = [...chosen];
  const outcomes = [];
  const worker = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) outcomes.push(await report(next, packs));
  };
  await Promise.all(Array.from({ length: Math.min(availableParallelism(), chosen.length) }, worker));

  const failed = outcomes.filter((well) => !well).length;
  say(`\n${chosen.length - failed} checks passed, ${failed} failed`);
  return failed === 0 ? 0 : 1;
}

async function report(each, packs) {
  const started = performance.now();
  const { problems, remedy, note = each.about } = await each.run({ packs });
  const took = faint(`(${duration(performance.now() - started)})`);
  if (problems === '') {
    say(`  ${success('passed')}  ${each.name}: ${note} ${took}`);
    return true;
  }
  say(
    `  ${failure('failed')}  ${each.name}: ${each.about} ${took}\n${indented(problems)}\n    ${strong('What to do:')} ${remedy}`,
  );
  return false;
}
