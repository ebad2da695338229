import type { LayerConfig, ReusePolicy } from '@bufferwise/core-policy';
import { type BufferClass, byLifecycle, type ClassPolicies, withClassPolicies } from './buffer-classes.ts';

/** Policies to try. */
export interface Choice {
  /** What is not required, in words. */
  readonly name: string;
  readonly policies: ClassPolicies;
  /** The lifecycle whose classes it changes; null for everything required, and for more than one. */
  readonly lifecycle: string | null;
}

export const WHOLE: Choice = { name: 'nothing (whole)', policies: {}, lifecycle: null };

const OTHERS: readonly ReusePolicy[] = ['optional', 'private'];

/** Everything required; then all classes of a lifecycle, and each by itself, with another policy while the rest stays required. */
export function choicesToTry(classes: readonly BufferClass[]): Choice[] {
  const changed = [...byLifecycle(classes)].flatMap(([lifecycle, members]) => {
    const subsets = members.length > 1 ? [members, ...members.map((each) => [each])] : [members];
    return subsets.flatMap((subset) => OTHERS.map((policy) => choiceOf(subset, policy, lifecycle)));
  });
  return [WHOLE, ...changed];
}

function choiceOf(classes: readonly BufferClass[], policy: ReusePolicy, lifecycle: string): Choice {
  return {
    name: wordsOf(classes, policy),
    policies: Object.fromEntries(classes.map(({ name }) => [name, policy])),
    lifecycle,
  };
}

/** Choices for different lifecycles, all at once. */
export function together(choices: readonly Choice[]): Choice {
  if (choices.length === 0) return WHOLE;
  if (choices.length === 1) return choices[0];
  return {
    name: choices.map(({ name }) => name).join('; '),
    policies: Object.assign({}, ...choices.map(({ policies }) => policies)),
    lifecycle: null,
  };
}

/** `key and value of window 1,024 optional`. */
function wordsOf(classes: readonly BufferClass[], policy: ReusePolicy): string {
  const roles = classes.map(({ role }) => role);
  const { lifecycle, per } = classes[0];
  const listed = roles.length === 1 ? roles[0] : `${roles.slice(0, -1).join(', ')} and ${roles.at(-1)}`;
  return per === 'sequence' ? `${listed} ${policy}` : `${listed} of ${lifecycle} ${policy}`;
}

/**
 * Equal for choices between which a manager sees no difference: keys and values of one size take each other's place.
 *
 * Rings are told apart from state, as a request needs only the latter.
 */
export function signatureOf(layers: readonly LayerConfig[], { policies }: Choice): string {
  const shapes = withClassPolicies(layers, policies).map(({ type, buffers, ...rest }) => [
    type,
    'slidingWindowSize' in rest ? rest.slidingWindowSize : null,
    'numSinkTokens' in rest ? rest.numSinkTokens : null,
    buffers.map(({ role, size, reusePolicy }) => `${size} ${reusePolicy} ${type === 'ssm' ? role : ''}`).sort(),
  ]);
  return JSON.stringify(shapes);
}
