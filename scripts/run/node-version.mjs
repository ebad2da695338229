const MINIMUM = [20, 19];

/** What to tell the person whose Node is too old, or undefined when it is new enough. */
export function nodeComplaint(version) {
  const [major, minor] = version.split('.').map(Number);
  if (major > MINIMUM[0] || (major === MINIMUM[0] && minor >= MINIMUM[1])) return undefined;
  return `Bufferwise needs Node ${MINIMUM.join('.')} or newer, this is ${version}. Get a current one from https://nodejs.org, then run the command again.`;
}
