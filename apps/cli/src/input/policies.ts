import { REUSE_POLICIES, type ReusePolicy } from '@bufferwise/core-policy';
import type { PolicyChoice } from '@bufferwise/hybrid-engine';
import { UsageError } from '../cli-error.ts';

/**
 * Policies given as `auto`, or as `ROLE=POLICY` or `LAYER.ROLE=POLICY` between commas.
 *
 * @throws {UsageError} on a word that is none of these
 */
export function parsePolicies(text: string): PolicyChoice {
  return text === 'auto' ? 'auto' : parseRolePolicies(text);
}

/** The same without `auto`. */
export function parseRolePolicies(text: string): Record<string, ReusePolicy> {
  const policies: Record<string, ReusePolicy> = {};
  for (const part of text.split(',')) {
    const [role, word, ...rest] = part.split('=').map((each) => each.trim());
    const policy = REUSE_POLICIES.find((each) => each === word);
    if (role === '' || policy === undefined || rest.length > 0) {
      throw new UsageError(
        `--policies has ${JSON.stringify(part)}; write ROLE=POLICY between commas, where a policy is ${REUSE_POLICIES.join(', ')}`,
      );
    }
    policies[role] = policy;
  }
  return policies;
}
