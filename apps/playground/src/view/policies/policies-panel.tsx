import type { ReusePolicy } from '@bufferwise/core-policy';
import { compare, reopen } from '../../state/actions.ts';
import { about, chosenPolicies, comparison, reopening } from '../../state/store.ts';
import { ScrollRegion } from '../parts/scroll-region.tsx';
import { Switch } from '../parts/switch.tsx';
import { ComparisonView } from './comparison-view.tsx';

const POLICIES: readonly ReusePolicy[] = ['required', 'optional', 'private'];

/** A policy for each buffer, what it would cost, and how to have it. */
export function PoliciesPanel() {
  const { value: engine } = about;
  if (engine === null) return null;
  const roles = [...new Set(engine.layers.flatMap(({ buffers }) => buffers.map(({ role }) => role)))];
  const { value: chosen } = chosenPolicies;
  const policyOf = (layerId: number, role: string): ReusePolicy => {
    const own = role.startsWith('replay') ? 'private' : 'required';
    return chosen[`${layerId}.${role}`] ?? own;
  };
  const choose = (layerIds: readonly number[], role: string, policy: ReusePolicy) => {
    const next = { ...chosenPolicies.value };
    for (const layerId of layerIds) next[`${layerId}.${role}`] = policy;
    chosenPolicies.value = next;
  };
  const layersWith = (role: string) =>
    engine.layers.filter(({ buffers }) => buffers.some((buffer) => buffer.role === role)).map(({ layerId }) => layerId);
  const differs = JSON.stringify(inUse(chosen)) !== JSON.stringify(inUse(engine.settings.policies));
  const isComparing = comparison.value.state === 'running';
  return (
    <div class="policies">
      <p class="quiet">
        Each buffer of each layer has its own policy. <b>Required</b>: shared, and a match needs it. <b>Optional</b>: shared, and
        a match can do without it. <b>Private</b>: never shared; who needs it computes it.
      </p>
      <ScrollRegion kind="table-scroll" label="Policies by layer and role">
        <table class="policy-table">
          <thead>
            <tr>
              <th scope="col">Layer</th>
              {roles.map((role) => (
                <th key={role} scope="col">
                  {role.replaceAll('_', ' ')}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            <tr class="all">
              <th scope="row">All layers</th>
              {roles.map((role) => {
                const policies = new Set(layersWith(role).map((layerId) => policyOf(layerId, role)));
                return (
                  <td key={role}>
                    <PolicySelect
                      label={`Policy of every ${role}`}
                      value={policies.size === 1 ? [...policies][0] : null}
                      onChange={(policy) => choose(layersWith(role), role, policy)}
                    />
                  </td>
                );
              })}
            </tr>
            {engine.layers.map(({ layerId, name, buffers }) => (
              <tr key={layerId}>
                <th scope="row">
                  {layerId} <small>{name}</small>
                </th>
                {roles.map((role) => (
                  <td key={role}>
                    {buffers.some((buffer) => buffer.role === role) && (
                      <PolicySelect
                        label={`Policy of ${role} of layer ${layerId}`}
                        value={policyOf(layerId, role)}
                        onChange={(policy) => choose([layerId], role, policy)}
                      />
                    )}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </ScrollRegion>
      <div class="row">
        <button type="button" class="button primary" onClick={compare} disabled={isComparing || reopening.value}>
          {isComparing ? 'Comparing …' : 'Compare'}
        </button>
        <button type="button" class="button" onClick={() => reopen({ policies: chosen })} disabled={!differs || reopening.value}>
          {reopening.value ? 'Making an engine …' : 'Use these policies'}
        </button>
        <button
          type="button"
          class="button"
          onClick={() => {
            chosenPolicies.value = {};
          }}
          disabled={Object.keys(chosen).length === 0}
        >
          As the model has them
        </button>
      </div>
      <Switch
        label="Guess ahead: wrong guesses are taken back out of a private replay ring"
        on={engine.settings.maxDrafts > 0}
        disabled={reopening.value}
        onChange={(on) => reopen({ maxDrafts: on ? 3 : 0, policies: {} })}
      />
      <ComparisonView />
    </div>
  );
}

function PolicySelect({
  label,
  value,
  onChange,
}: {
  label: string;
  value: ReusePolicy | null;
  onChange: (policy: ReusePolicy) => void;
}) {
  return (
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
  );
}

/** What differs from the model's own policies, in one order. */
function inUse(policies: Readonly<Record<string, ReusePolicy>>): [string, ReusePolicy][] {
  return Object.entries(policies)
    .filter(([name, policy]) => policy !== (name.includes('replay') ? 'private' : 'required'))
    .sort(([a], [b]) => (a < b ? -1 : 1));
}
