import { isDeepStrictEqual } from 'node:util';

/** The last line of a process as JSON; what it printed instead, where that is none. @param {Promise<{ output: string }>} running */
export async function said(running) {
  const { output } = await running;
  try {
    return JSON.parse(output.trimEnd().split('\n').at(-1));
  } catch {
    return output;
  }
}

/** A sentence where something is not as it should be, else nothing. */
export function differences(what, found, wanted) {
  if (isDeepStrictEqual(found, wanted)) return [];
  return [`${what} says\n${typeof found === 'string' ? found : JSON.stringify(found)}\ninstead of\n${JSON.stringify(wanted)}`];
}
