package jobs

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/cronlatch/cronlatch/internal/typo"
)

// refusedZone answers for names that the database knows (or that people expect it to know) and that say a rule or a
// host instead of a place: the abbreviation EST never has summer time, CST is three different zones, Local differs from
// replica to replica. The value is what to write instead.
func refusedZone(name string) (instead string, refused bool) {
	instead = zonesForAbbreviation(strings.ToUpper(name))
	return instead, instead != ""
}

func zonesForAbbreviation(upper string) string {
	switch upper {
	case "LOCAL", "LOCALTIME", "FACTORY", "POSIXRULES", "Z":
		return "UTC or a place like Europe/Berlin"
	case "EST", "EDT", "ET", "EST5EDT":
		return "America/New_York, or Etc/GMT+5 for five hours behind UTC all year"
	case "CST", "CDT", "CT", "CST6CDT":
		return "America/Chicago, Asia/Shanghai or America/Havana"
	case "MST", "MDT", "MT", "MST7MDT":
		return "America/Denver, or America/Phoenix for seven hours behind UTC all year"
	case "PST", "PDT", "PT", "PST8PDT":
		return "America/Los_Angeles"
	case "HST", "HDT", "AKST", "AKDT":
		return "Pacific/Honolulu or America/Anchorage"
	case "AST", "ADT", "NST", "NDT":
		return "America/Halifax or America/St_Johns"
	case "BST", "IST":
		return "Europe/London, Europe/Dublin, Asia/Kolkata or Asia/Jerusalem"
	case "CET", "CEST", "MET", "MEST", "MEZ", "MESZ":
		return "Europe/Berlin or Europe/Paris"
	case "EET", "EEST":
		return "Europe/Helsinki or Africa/Cairo"
	case "WET", "WEST":
		return "Europe/Lisbon"
	case "MSK":
		return "Europe/Moscow"
	case "JST", "KST":
		return "Asia/Tokyo or Asia/Seoul"
	case "SGT", "HKT", "PHT":
		return "Asia/Singapore, Asia/Hong_Kong or Asia/Manila"
	case "AEST", "AEDT", "ACST", "ACDT", "AWST":
		return "Australia/Sydney, Australia/Adelaide or Australia/Perth"
	case "NZST", "NZDT":
		return "Pacific/Auckland"
	case "SAST":
		return "Africa/Johannesburg"
	case "BRT", "BRST", "ART", "CLT", "CLST":
		return "America/Sao_Paulo, America/Buenos_Aires or America/Santiago"
	default:
		return ""
	}
}

// explain says why a name is not accepted and what to write.
func (db *zoneDatabase) explain(name string) string {
	if name == "" {
		return `the time zone is empty; write UTC or a place like Europe/Berlin`
	}
	problem := "unknown time zone " + quote(name)
	if instead, refused := refusedZone(name); refused {
		reason := "an abbreviation does not say which place's rules apply"
		if strings.HasPrefix(strings.ToUpper(name), "LOCAL") {
			reason = "the host's zone differs from replica to replica"
		}
		return fmt.Sprintf("time zone %s is not accepted: %s; write %s", quote(name), reason, instead)
	}
	if zone, ok := zoneForOffset(name); ok {
		return fmt.Sprintf("%s; the zone with this fixed offset is %s (its sign is the other way round)", problem, zone)
	}
	if near := db.nearest(name); near != "" {
		return fmt.Sprintf("%s, did you mean %s?", problem, near)
	}
	return problem + "; write an IANA name like Europe/Berlin, or UTC"
}

// zoneForOffset reads +2, UTC+02:00 or GMT-5. The names in Etc count hours west of Greenwich.
func zoneForOffset(name string) (string, bool) {
	rest := strings.ToUpper(name)
	for _, prefix := range []string{"UTC", "GMT", "ETC/UTC"} {
		rest = strings.TrimPrefix(rest, prefix)
	}
	if rest == "" || rest[0] != '+' && rest[0] != '-' {
		return "", false
	}
	hours, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSuffix(rest[1:], "00"), ":"))
	sign, most := "-", 14
	if rest[0] == '-' {
		sign, most = "+", 12
	}
	if err != nil || hours < 1 || hours > most {
		return "", false
	}
	return fmt.Sprintf("Etc/GMT%s%d", sign, hours), true
}

// nearest prefers the same name in another spelling, then the same place in any region, then a typing mistake.
func (db *zoneDatabase) nearest(name string) string {
	plain := strings.ReplaceAll(strings.ToLower(name), " ", "_")
	for _, known := range db.names {
		if strings.ToLower(known) == plain {
			return known
		}
	}
	for _, known := range db.names {
		if strings.HasSuffix(strings.ToLower(known), "/"+plain[strings.LastIndexByte(plain, '/')+1:]) {
			return known
		}
	}
	return nearest(name, db.names)
}

// nearest is the candidate with the fewest typing mistakes; empty when all have more than a third of the name, or more
// than three.
func nearest(name string, candidates []string) string {
	const longest = 64 // a paste is no typing mistake
	if len(name) > longest {
		return ""
	}
	best, fewest := "", min(3, len(name)/3)+1
	for _, c := range candidates {
		if d := typo.Distance(strings.ToLower(name), strings.ToLower(c)); d < fewest {
			best, fewest = c, d
		}
	}
	return best
}
