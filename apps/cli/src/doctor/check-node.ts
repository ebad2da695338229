import type { Finding } from './finding.ts';

/** Major and minor version that the packages ask for. */
const LEAST = [20, 19] as const;

/** @param version as `process.versions.node` has it */
export function checkNode(version: string): Finding {
  const [major, minor] = version.split('.').map(Number);
  const isEnough = major > LEAST[0] || (major === LEAST[0] && minor >= LEAST[1]);
  return {
    name: 'Node',
    state: isEnough ? 'ok' : 'fail',
    found: version,
    means: isEnough ? 'all packages run' : 'the packages are made for newer ones',
    mend: isEnough ? null : `install Node ${LEAST.join('.')} or later`,
  };
}
