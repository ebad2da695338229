import { completionOf } from '../commands/completion.ts';
import { demo } from '../commands/demo.ts';
import { doctor } from '../commands/doctor.ts';
import { generate } from '../commands/generate.ts';
import { plan } from '../commands/plan.ts';
import { prefix } from '../commands/prefix.ts';
import { replay } from '../commands/replay.ts';
import type { Command } from './command.ts';

/** All commands, in the order in which help lists them. A new one is a file in `commands/` and a line here. */
export const COMMANDS: readonly Command[] = withCompletion([plan, replay, generate, prefix, demo, doctor]);

function withCompletion(others: readonly Command[]): readonly Command[] {
  return [...others, completionOf(others)];
}
