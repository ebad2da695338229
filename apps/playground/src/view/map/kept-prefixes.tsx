import { forgetKept } from '../../state/actions.ts';
import { about, statistics } from '../../state/store.ts';

/** What goes beyond a reload of the page. */
export function KeptPrefixes() {
  const keeps = about.value?.keeps;
  const counts = statistics.value?.kept;
  if (keeps === undefined) return null;
  return (
    <div class="tier kept">
      <h3>
        For the next visit
        {keeps.kept && (
          <button type="button" class="button small" onClick={forgetKept}>
            Forget
          </button>
        )}
      </h3>
      <p class="quiet">
        {keeps.kept
          ? `Prefixes are kept in this browser, and found again after a reload: ${tokens(counts?.savedTokens)} kept since this page was opened, ${tokens(counts?.loadedTokens)} loaded from earlier visits.`
          : keeps.why}
      </p>
    </div>
  );
}

function tokens(count = 0): string {
  return `${count.toLocaleString('en')} ${count === 1 ? 'token' : 'tokens'}`;
}
