import { availableParallelism } from 'node:os';
import { buildPackages } from './build.mjs';
import { dependencies } from './dependencies.mjs';
import { CommandError } from './process.mjs';
import { duration, failure, faint, indented, progress, say, strong, success } from './terminal.mjs';
import { publishedPackages } from './workspace.mjs';

/** `check [name …]`: one line for each check; 0 when all are well. */
export async function check(names) {
  const { step } = progress(names.length === 0 ? 3 : undefined);
  await step('dependencies', dependencies);
  // Only now: checks use what has just been installed.
  const { checks } = await import('../checks/all.mjs');
  const { packPackages } = await import('../release/pack.mjs');

  const unknown = names.find((name) => !checks.some((each) => each.name === name));
  if (unknown !== undefined) {
    const list = checks.map((each) => `  ${each.name.padEnd(10)} ${each.about}`).join('\n');
    throw new CommandError(`There is no check "${unknown}". The checks are:\n${list}`);
  }
  const chosen = names.length === 0 ? checks : checks.filter((each) => names.includes(each.name));
  const needPacks = chosen.some((each) => each.packs);
  let packs = [];
  if (needPacks) {
    await step('build', () => buildPackages(publishedPackages().map(({ name }) => name)));
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
  const { problems, remedy, note = each.about } = await each.run({ packs }).catch(brokenCheck);
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

/** A check that breaks is a failure of its own, and takes no other with it. A person who interrupts means all of them. */
function brokenCheck(error) {
  if (error instanceof CommandError) throw error;
  return { problems: error.stack, remedy: 'mend the check: it broke before it could say anything.' };
}
