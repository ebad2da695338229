import type { ReusePolicy } from '@bufferwise/core-policy';

const POLICIES: readonly ReusePolicy[] = ['required', 'optional', 'private'];

interface PolicySelectProps {
  /** What is shown above it. */
  name: string;
  /** What it is called for whoever does not see where it stands. */
  label: string;
  /** Null where buffers differ. */
  value: ReusePolicy | null;
  onChange: (policy: ReusePolicy) => void;
}

/** The policy of one buffer, or of several. */
export function PolicySelect({ name, label, value, onChange }: PolicySelectProps) {
  return (
    <label class="choice">
      <span>{name}</span>
      <select
        aria-label={label}
        data-policy={value ?? 'mixed'}
        value={value ?? ''}
        onChange={({ currentTarget }) => onChange(currentTarget.value as ReusePolicy)}
      >
        {value === null && <option value="">mixed</option>}
        {POLICIES.map((policy) => (
          <option key={policy} value={policy}>
            {policy}
          </option>
        ))}
      </select>
    </label>
  );
}
