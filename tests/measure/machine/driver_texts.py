"""What drivers' programs print, in their formats, with figures made up for the tests."""

QUERY = """\
index, name, memory.total [MiB], memory.used [MiB], driver_version, power.limit [W], power.draw [W], clocks.current.sm [MHz], clocks.max.sm [MHz], temperature.gpu, utilization.gpu [%], pcie.link.gen.max, pcie.link.width.max, pcie.link.width.current, mig.mode.current
0, NVIDIA H100 80GB HBM3, 81559 MiB, 4 MiB, 570.86.15, 700.00 W, 71.27 W, 345 MHz, 1980 MHz, 31, 0 %, 5, 16, 16, Disabled
1, NVIDIA H100 80GB HBM3, 81559 MiB, 40780 MiB, 570.86.15, 500.00 W, 312.90 W, 1755 MHz, 1980 MHz, 64, 98 %, 5, 16, 8, Enabled
"""  # noqa: E501
OLD_CARD = """\
index, name, memory.total [MiB], memory.used [MiB], driver_version, power.limit [W], power.draw [W], clocks.current.sm [MHz], clocks.max.sm [MHz], temperature.gpu, utilization.gpu [%], pcie.link.gen.max, pcie.link.width.max, pcie.link.width.current, mig.mode.current
0, Quadro RTX 8000, 49152 MiB, 120 MiB, 470.82, [N/A], [Not Supported], 300 MHz, 2100 MHz, 40, 3 %, 3, 16, 16, [N/A]
"""  # noqa: E501
TOPOLOGY = (
    "\t\x1b[4mGPU0\tGPU1\tGPU2\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
    "GPU0\t X \tNV18\tNV18\tPXB\t0-55,112-167\t0\t\tN/A\n"
    "GPU1\tNV18\t X \tSYS\tNODE\t0-55,112-167\t0\t\tN/A\n"
    "GPU2\tNV18\tSYS\t X \tSYS\t56-111\t1\t\tN/A\n"
    "NIC0\tPXB\tNODE\tSYS\t X \t\t\t\t\n"
    "\nLegend:\n\n  X    = Self\n  SYS  = Connection traversing PCIe as well as the SMP interconnect\n"
    "\nNIC Legend:\n\n  NIC0: mlx5_0\n"
)
XML = """\
<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log>
  <timestamp>Thu Nov 26 12:00:00 2026</timestamp>
  <driver_version>570.86.15</driver_version>
  <cuda_version>12.8</cuda_version>
  <attached_gpus>1</attached_gpus>
  <gpu id="00000000:1B:00.0">
    <product_name>NVIDIA L40S</product_name>
    <product_architecture>Ada Lovelace</product_architecture>
    <mig_mode><current_mig>N/A</current_mig><pending_mig>N/A</pending_mig></mig_mode>
    <pci>
      <pci_gpu_link_info>
        <pcie_gen><max_link_gen>4</max_link_gen><current_link_gen>1</current_link_gen></pcie_gen>
        <link_widths><max_link_width>16x</max_link_width><current_link_width>16x</current_link_width></link_widths>
      </pci_gpu_link_info>
    </pci>
    <fb_memory_usage><total>46068 MiB</total><reserved>600 MiB</reserved><used>3 MiB</used></fb_memory_usage>
    <utilization><gpu_util>7 %</gpu_util></utilization>
    <temperature><gpu_temp>29 C</gpu_temp></temperature>
    <gpu_power_readings>
      <power_state>P8</power_state>
      <average_power_draw>N/A</average_power_draw>
      <instant_power_draw>34.51 W</instant_power_draw>
      <current_power_limit>350.00 W</current_power_limit>
    </gpu_power_readings>
    <clocks><sm_clock>210 MHz</sm_clock></clocks>
    <max_clocks><sm_clock>2520 MHz</sm_clock></max_clocks>
  </gpu>
</nvidia_smi_log>
"""
AMD_STATIC = """\
{"gpu_data": [{"gpu": 0,
  "asic": {"market_name": "AMD Instinct MI300X", "vendor_id": "0x1002", "num_compute_units": 304},
  "bus": {"bdf": "0000:05:00.0", "max_pcie_width": 16, "max_pcie_speed": {"value": 32, "unit": "GT/s"}},
  "limit": {"max_power": {"value": 750, "unit": "W"}, "socket_power": {"value": 750, "unit": "W"}},
  "driver": {"name": "amdgpu", "version": "6.12.12"},
  "board": {"product_name": "AMD Instinct MI300X OAM"},
  "vram": {"type": "HBM", "size": {"value": 196592, "unit": "MB"}}}]}
"""
AMD_METRIC = """\
{"gpu_data": [{"gpu": 0, "usage": {"gfx_activity": {"value": 50, "unit": "%"}},
  "power": {"socket_power": {"value": 140, "unit": "W"}},
  "clock": {"gfx_0": {"clk": {"value": 132, "unit": "MHz"}, "max_clk": {"value": 2100, "unit": "MHz"}}},
  "temperature": {"edge": "N/A", "hotspot": {"value": 41, "unit": "C"}},
  "pcie": {"width": 16},
  "mem_usage": {"total_vram": {"value": 196592, "unit": "MB"}, "used_vram": {"value": 283, "unit": "MB"}}}]}
"""
ROCM = """\
WARNING: AMD GPU device(s) is/are in a low-power state. Check power control/runtime_status

{"card0": {"Card Series": "AMD Instinct MI210", "Card Model": "0x740f", "Card Vendor": "Advanced Micro Devices, Inc.",
  "VRAM Total Memory (B)": "68702699520", "VRAM Total Used Memory (B)": "11300864",
  "Max Graphics Package Power (W)": "300.0", "Average Graphics Package Power (W)": "41.0",
  "Temperature (Sensor junction) (C)": "38.0", "GPU use (%)": "0"},
 "card1": {"Card series": "AMD Instinct MI210", "VRAM Total Memory (B)": "68702699520"},
 "system": {"Driver version": "6.7.0"}}
"""
ROCM_TOPOLOGY = """\
{"system": {"(Topology) Hops between DRM devices 0 and 1": "1",
            "(Topology) Link type between DRM devices 0 and 1": "XGMI"}}
"""
MAC = '{"SPDisplaysDataType": [{"_name": "Apple M2 Max", "sppci_cores": "38", "sppci_model": "Apple M2 Max"}]}'
CPUINFO = "".join(
    f"processor\t: {thread}\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC 7763 64-Core Processor\n"
    f"physical id\t: {thread % 2}\ncore id\t\t: {thread // 4}\nflags\t\t: fpu avx2 sse4_2\n\n"
    for thread in range(8)
)
MEMINFO = "MemTotal:       527889384 kB\nMemFree:         1000000 kB\nMemAvailable:   500000000 kB\n"
