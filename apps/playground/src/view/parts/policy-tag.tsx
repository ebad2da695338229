import type { ReusePolicy } from '@bufferwise/core-policy';

const MEANINGS: Readonly<Record<ReusePolicy, string>> = {
  required: 'Shared; a match needs it',
  optional: 'Shared; a match can do without it',
  private: 'Never shared',
};

/** A reuse policy by name, with what it means. */
export function PolicyTag({ policy }: { policy: ReusePolicy }) {
  return (
    <span class="tag" data-policy={policy} title={MEANINGS[policy]}>
      {policy}
    </span>
  );
}
