import type { ReusePolicy } from '@bufferwise/core-policy';
import type { EngineAbout } from '../../protocol/about.ts';
import { compare, reopen } from '../../state/actions.ts';
import { about, chosenPolicies, comparing, comparisons, reopening } from '../../state/store.ts';
import { bytesText, plain } from '../../story/names.ts';
import { ComparisonView, type Figure } from '../parts/comparison-view.tsx';
import { Switch } from '../parts/switch.tsx';
import { PolicySelect } from './policy-select.tsx';

type Policies = Readonly<Record<string, ReusePolicy>>;

const FIGURES: readonly Figure[] = [
  { name: 'Left for others by the first', of: ({ leftBytes }) => leftBytes, text: bytesText, more: null },
  { name: 'Memory in use at most', of: ({ mostBytes }) => mostBytes, text: bytesText, more: false },
  { name: 'Found by the second, tokens', of: ({ second }) => second.reusedTokens, text: plain, more: true },
  { name: 'Read by the second', of: ({ second }) => second.computedTokens, text: plain, more: false },
  { name: 'Computed again', of: ({ second }) => second.recomputedTokens, text: plain, more: false },
  { name: 'First word after, ms', of: ({ second }) => Math.round(second.timeToFirstTokenMs), text: plain, more: false },
];

/** A policy for each buffer, what it would cost, and how to have it. */
export function PoliciesPanel() {
  const { value: engine } = about;
  if (engine === null) return null;
  const { value: chosen } = chosenPolicies;
  return (
    <div class="policies">
      <p class="quiet">
        Each buffer of each layer has a policy of its own. <b>Required</b>: shared, and a match needs it. <b>Optional</b>: shared,
        and a match can do without it. <b>Private</b>: never shared; who needs it computes it.
      </p>
      <RolePolicies engine={engine} chosen={chosen} />
      <details>
        <summary>Layer by layer</summary>
        <LayerPolicies engine={engine} chosen={chosen} />
      </details>
      <div class="row">
        <button
          type="button"
          class="button primary"
          onClick={() => compare('policies', { policies: {} }, { policies: chosen })}
          disabled={comparing.value || reopening.value}
        >
          {comparisons.policies.value.state === 'running' ? 'Comparing …' : 'Compare'}
        </button>
        <button
          type="button"
          class="button"
          onClick={() => reopen({ policies: chosen })}
          disabled={sameChoice(chosen, engine.settings.policies) || reopening.value}
        >
          {reopening.value ? 'Making an engine …' : 'Use these'}
        </button>
        <button type="button" class="button" onClick={() => choose({})} disabled={sameChoice(chosen, {})}>
          Undo
        </button>
      </div>
      <ComparisonView
        shown={comparisons.policies.value}
        title="Two requests, one beginning"
        sides={["the model's own", 'yours']}
        figures={FIGURES}
        invitation="“Compare” runs the same two requests under the model's own policies and under yours, in engines of their own."
      />
      <Switch
        label="Guess ahead: what was guessed wrongly is taken back out of a private replay ring"
        on={engine.settings.maxDrafts > 0}
        disabled={reopening.value}
        onChange={(on) => reopen({ maxDrafts: on ? 3 : 0, policies: {} })}
      />
    </div>
  );
}

interface ChoiceProps {
  engine: EngineAbout;
  chosen: Policies;
}

/** One choice for all buffers of a role. */
function RolePolicies({ engine, chosen }: ChoiceProps) {
  const buffers = engine.layers.flatMap(({ layerId, buffers: own }) => own.map(({ role }) => ({ layerId, role })));
  const roles = [...new Set(buffers.map(({ role }) => role))];
  return (
    <div class="choices">
      {roles.map((role) => {
        const alike = buffers.filter((buffer) => buffer.role === role);
        const policies = new Set(alike.map(({ layerId }) => policyOf(chosen, layerId, role)));
        return (
          <PolicySelect
            key={role}
            name={role.replaceAll('_', ' ')}
            label={`Policy of every ${role.replaceAll('_', ' ')}`}
            value={policies.size === 1 ? [...policies][0] : null}
            onChange={(policy) =>
              choose({ ...chosen, ...Object.fromEntries(alike.map(({ layerId }) => [`${layerId}.${role}`, policy])) })
            }
          />
        );
      })}
    </div>
  );
}

/** A choice for each buffer. */
function LayerPolicies({ engine, chosen }: ChoiceProps) {
  return (
    <ul class="layers">
      {engine.layers.map(({ layerId, name, buffers }) => (
        <li key={layerId}>
          <h4>
            {layerId} <span class="quiet">{name}</span>
          </h4>
          <div class="choices">
            {buffers.map(({ role }) => (
              <PolicySelect
                key={role}
                name={role.replaceAll('_', ' ')}
                label={`Policy of ${role.replaceAll('_', ' ')} of layer ${layerId}`}
                value={policyOf(chosen, layerId, role)}
                onChange={(policy) => choose({ ...chosen, [`${layerId}.${role}`]: policy })}
              />
            ))}
          </div>
        </li>
      ))}
    </ul>
  );
}

function choose(policies: Policies): void {
  chosenPolicies.value = policies;
}

/** What a buffer has without a choice: the engine keeps replay rings private. */
const ownPolicy = (name: string): ReusePolicy => (name.includes('replay') ? 'private' : 'required');

function policyOf(chosen: Policies, layerId: number, role: string): ReusePolicy {
  const name = `${layerId}.${role}`;
  return chosen[name] ?? ownPolicy(name);
}

/** Whether two choices come to the same. */
function sameChoice(a: Policies, b: Policies): boolean {
  return Object.keys({ ...a, ...b }).every((name) => (a[name] ?? ownPolicy(name)) === (b[name] ?? ownPolicy(name)));
}
