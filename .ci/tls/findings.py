"""Reads what testssl.sh found, and fails if anything is worse than "low", or if it
did not get through."""

import json
import sys

with open(sys.argv[1]) as f:
    findings = json.load(f)

# One of each part of the scan; it goes in this order.
for part in ["TLS1_3", "cipherlist_STRONG", "PFS", "cert_trust", "cipher_order", "heartbleed", "LUCKY13", "RC4"]:
    if not any(f["id"].startswith(part) for f in findings):
        sys.exit(f"testssl.sh did not look at {part}")

bad = [f for f in findings if f["severity"] in ("MEDIUM", "HIGH", "CRITICAL", "FATAL")]
for f in bad:
    print(f'{f["severity"]}: {f["id"]}: {f["finding"]}')
if bad:
    sys.exit(f"testssl.sh found {len(bad)} things worse than low")
print(f"testssl.sh: {len(findings)} findings, none worse than low")
